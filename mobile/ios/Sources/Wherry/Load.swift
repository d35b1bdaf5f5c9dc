import CWherry
import Foundation

/// How far a load or a download is.
public struct LoadProgress: Sendable, Equatable {
    /// Of a load "files", "tokenizer", "weights" and "ready"; of a download "check" and "download".
    public let phase: String
    /// Bytes where the phase is "weights", "check" or "download".
    public let done: Int64
    public let total: Int64
}

/// What an engine is made of. Fields that are not set are the model's own limits.
public struct EngineOptions: Sendable {
    /// Tokens of one request, prompt and answer.
    public var context: Int?
    /// Requests that are answered together; more wait.
    public var maxBatch: Int?
    /// Tokens that the cache holds in all.
    public var kvTokens: Int?
    /// Of the kernels; nil: all cores.
    public var threads: Int?
    /// A folder that keeps the weights as the kernels read them: they are mapped from there at the
    /// next load, instead of being packed again.
    public var packDir: URL?
    /// Whether a load fails at once where the device has too little memory.
    public var checkMemory = true
    /// Any other option of `wherry_app_open`.
    public var more: [String: JSONValue] = [:]

    public init() {}

    var json: [String: JSONValue] {
        var made = more
        made["context"] = context.map { .int(Int64($0)) } ?? made["context"]
        made["max_batch"] = maxBatch.map { .int(Int64($0)) } ?? made["max_batch"]
        made["kv_tokens"] = kvTokens.map { .int(Int64($0)) } ?? made["kv_tokens"]
        made["threads"] = threads.map { .int(Int64($0)) } ?? made["threads"]
        made["pack_dir"] = packDir.map { .string($0.path) } ?? made["pack_dir"]
        return made
    }
}

/// The C callback for a call's progress; it returns whether the call continues.
final class Watcher: @unchecked Sendable {
    private let lock = NSLock()
    private var cancelled = false
    private var onCancel: (() -> Void)?
    private let progress: @Sendable (LoadProgress) -> Void

    init(_ progress: @escaping @Sendable (LoadProgress) -> Void, onCancel: (() -> Void)? = nil) {
        self.progress = progress
        self.onCancel = onCancel
    }

    func cancel() {
        lock.withLock { cancelled = true }
        onCancel?()
    }

    fileprivate func report(_ phase: String, _ done: Int64, _ total: Int64) -> Bool {
        if lock.withLock({ cancelled }) { return false }
        progress(LoadProgress(phase: phase, done: done, total: total))
        return true
    }

    /// Runs a call that blocks on a thread of its own; cancelling the task ends it at its next
    /// report.
    func run<Value: Sendable>(
        _ call: @escaping @Sendable (UnsafePointer<wherry_app_progress>) throws -> Value
    ) async throws -> Value {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                DispatchQueue.global(qos: .userInitiated).async {
                    var record = wherry_app_progress(
                        size: MemoryLayout<wherry_app_progress>.size,
                        context: Unmanaged.passUnretained(self).toOpaque(),
                        report: reported)
                    continuation.resume(
                        with: Result { try withExtendedLifetime(self) { try call(&record) } })
                }
            }
        } onCancel: {
            cancel()
        }
    }
}

private let reported:
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int64, Int64) -> Int32 = {
        context, phase, done, total in
        guard let context, let phase else { return 0 }
        let watcher = Unmanaged<Watcher>.fromOpaque(context).takeUnretainedValue()
        return watcher.report(String(cString: phase), done, total) ? 0 : 1
    }

/// The app of a folder; blocks.
func opened(
    _ folder: URL, _ options: EngineOptions, _ progress: UnsafePointer<wherry_app_progress>
) throws -> App {
    guard wherry_app_abi_version() == WHERRY_APP_ABI_VERSION else {
        throw WherryError.incompatible(
            "The linked core has version \(wherry_app_abi_version()) of its interface, this package "
                + "reads \(WHERRY_APP_ABI_VERSION). Make both by one wherry package.")
    }
    if options.checkMemory { try requireMemory(folder, options) }
    let json = String(decoding: try JSONEncoder().encode(options.json), as: UTF8.self)
    var made: OpaquePointer?
    let status = wherry_app_open(folder.path, json, progress, &made)
    guard status == 0, let made else { throw failure(status) }
    return App(made)
}
