import Foundation

#if os(iOS) || os(tvOS) || os(visionOS)
    import os
#endif

private struct Sizes: Decodable {
    struct Memory: Decodable {
        let weights: Int64?
        let workspace: Int64?
        let kv_per_token: Int64?
        let slot: Int64? // recurrent state of a sequence, or a snapshot of it
    }
    struct Deployment: Decodable {
        let context: Int64?
        let max_batch: Int64?
    }
    let memory: Memory?
    let deployment: Deployment?
}

/// Returns the bytes that this process can still allocate before the system ends it; nil: unknown.
private func availableMemory() -> Int64? {
    #if os(iOS) || os(tvOS) || os(visionOS)
        let bytes = os_proc_available_memory()
        return bytes > 0 ? Int64(bytes) : nil
    #elseif os(Linux)
        guard let text = try? String(contentsOfFile: "/proc/meminfo", encoding: .utf8) else {
            return nil
        }
        let line = text.split(separator: "\n").first { $0.hasPrefix("MemAvailable:") }
        return line.flatMap { Int64($0.filter(\.isNumber)) }.map { $0 * 1024 }
    #else
        return nil // macOS swaps memory to disk, so there is no limit
    #endif
}

/// Throws if the memory is known to be too small for the model, because the system would end the
/// app.
func requireMemory(_ folder: URL, _ options: EngineOptions) throws {
    // A folder without a readable manifest passes this check, because the load reports it.
    guard let data = try? Data(contentsOf: folder.appendingPathComponent("wherry.json")),
        let sizes = try? JSONDecoder().decode(Sizes.self, from: data),
        let weights = sizes.memory?.weights, let available = availableMemory()
    else { return }
    // Pages of the KV cache are allocated when they are used, so only the pages of one request must
    // fit.
    let tokens = options.context.map(Int64.init) ?? sizes.deployment?.context ?? 0
    let cache = (sizes.memory?.kv_per_token ?? 0).multipliedReportingOverflow(by: tokens)
    // The core allocates a slot for each sequence, and two for snapshots (engine/cache/kv_cache.cc).
    let sequences = options.maxBatch.map(Int64.init) ?? sizes.deployment?.max_batch ?? 1
    let state = (sizes.memory?.slot ?? 0).multipliedReportingOverflow(by: sequences + 2)
    let needed = weights + (sizes.memory?.workspace ?? 0)
        + (cache.overflow ? 1 << 60 : cache.partialValue)
        + (state.overflow ? 1 << 60 : state.partialValue)
    guard needed > available else { return }
    throw WherryError.notEnoughMemory(
        "\(folder.lastPathComponent) needs \(needed / 1_000_000) MB of memory, "
            + "\(available / 1_000_000) MB are free. Take a smaller EngineOptions.context or a "
            + "smaller model; checkMemory = false tries all the same.")
}
