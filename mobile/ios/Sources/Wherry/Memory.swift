import Foundation

#if os(iOS) || os(tvOS) || os(visionOS)
    import os
#endif

/// The memory of a model that is loaded with some options, told before the load; all in bytes.
public struct MemoryPlan: Equatable, Sendable {
    /// The model's weights, mapped from files or copied.
    public let weights: Int64
    /// Buffers of a step.
    public let workspace: Int64
    /// Recurrent state of all sequences; 0 for models without one.
    public let state: Int64
    /// Upper bound of the KV cache, whose pages take memory when they are used first, and of
    /// snapshots of recurrent state.
    public let cache: Int64
    /// What a load takes at least, with a cache for a short conversation, or for the context of
    /// `EngineOptions`.
    public let least: Int64
    /// What the app may take; nil: unknown.
    public let available: Int64?

    /// What the model takes at most.
    public var total: Int64 { weights + workspace + state + cache }
    public var fits: Bool { available.map { least <= $0 } ?? true }
}

extension MLCEngine {
    /// Tells what a load of a folder would take; nil: the folder has no readable manifest.
    ///
    /// A load bounds its KV cache by `MemoryPlan.cache`, and fails at once if the plan does not fit.
    public static func plan(_ folder: URL, options: EngineOptions = EngineOptions()) -> MemoryPlan? {
        guard let data = try? Data(contentsOf: folder.appendingPathComponent("wherry.json")),
            let sizes = try? JSONDecoder().decode(Sizes.self, from: data)
        else { return nil }
        return planned(sizes, options, options.memory ?? availableMemory)
    }

    /// Bytes that this process can still allocate before the system ends it; nil: unknown.
    public static var availableMemory: Int64? { bytesOfSystem() }
}

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

private let shortConversation: Int64 = 512 // tokens
// What the core takes for snapshots of a recurrent state (engine/cache/kv_cache.cc): a part of the
// bytes of the KV cache, and at least a few slots.
private let snapshotPart: Int64 = 4
private let fewestSnapshots: Int64 = 2

/// Plans the cache: room for all sequences at their full length, but no more than half of the memory
/// that weights, workspace and recurrent state leave, because the app and the system need the rest.
private func planned(_ sizes: Sizes, _ options: EngineOptions, _ available: Int64?) -> MemoryPlan? {
    guard let memory = sizes.memory, let weights = memory.weights else { return nil }
    func option(_ name: String) -> Int64? {
        if case .int(let value)? = options.json[name] { return value }
        return nil
    }
    let context = option("context") ?? sizes.deployment?.context ?? 0
    let sequences = option("max_batch") ?? sizes.deployment?.max_batch ?? 1
    let slot = memory.slot ?? 0
    let state = slot > 0 ? slot * (sequences + fewestSnapshots) : 0
    let page = memory.kv_per_token ?? 0
    let perToken = slot > 0 ? page + page / snapshotPart : page
    let fixed = weights + (memory.workspace ?? 0) + state
    // A context of more tokens than any memory holds is no overflow.
    func bytes(_ tokens: Int64) -> Int64 {
        let product = perToken.multipliedReportingOverflow(by: tokens)
        return product.overflow ? 1 << 60 : min(product.partialValue, 1 << 60)
    }
    let least = bytes(option("context") ?? min(context, shortConversation))
    let all = sequences.multipliedReportingOverflow(by: context)
    let requested = bytes(option("kv_tokens") ?? (all.overflow ? Int64.max : all.partialValue))
    let room = available.map { ($0 - fixed) / 2 } ?? Int64.max
    let most = option("kv_memory") ?? max(room, least)
    return MemoryPlan(
        weights: weights, workspace: memory.workspace ?? 0, state: state, cache: min(requested, most),
        least: fixed + least, available: available)
}

private func bytesOfSystem() -> Int64? {
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
func requireMemory(_ folder: URL, _ plan: MemoryPlan) throws {
    guard let available = plan.available, !plan.fits else { return }
    throw WherryError.notEnoughMemory(
        "\(folder.lastPathComponent) needs \(plan.least / 1_000_000) MB of memory, "
            + "\(available / 1_000_000) MB are free. Take a smaller EngineOptions.context or a "
            + "smaller model; checkMemory = false tries all the same.")
}
