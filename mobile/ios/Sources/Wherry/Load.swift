import CWherry
import Foundation

/// The progress of a load or a download.
public struct LoadProgress: Sendable, Equatable {
    /// The phase: of a load "files", "tokenizer", "weights" or "ready"; of a download "check" or
    /// "download".
    public let phase: String
    /// The amount that is done; in bytes if the phase is "weights", "check" or "download".
    public let done: Int64
    public let total: Int64
}

/// Options of an engine. Missing options have the model's own limits.
public struct EngineOptions: Sendable {
    /// Maximum tokens of one request, prompt and answer together.
    public var context: Int?
    /// Maximum number of requests that are answered together; further requests wait.
    public var maxBatch: Int?
    /// Number of tokens in the whole KV cache.
    public var kvTokens: Int?
    /// Number of threads for the kernels; nil: as many as large cores.
    public var threads: Int?
    /// "cpu" or "metal"; nil: the first of the package's devices that works, else the CPU;
    /// `EngineStats.passedOver` says why.
    public var device: String?
    /// A folder for packed weights and for what Metal has compiled: the next load maps them instead
    /// of packing the weights again.
    public var packDir: URL?
    /// Bytes that the model may take, of which the KV cache gets a part: see `MLCEngine.plan`; nil:
    /// what the system still gives to the app.
    public var memory: Int64?
    /// Whether a load fails at once if the device has too little memory.
    public var checkMemory = true
    /// Further options of `wherry_app_open`.
    public var more: [String: JSONValue] = [:]

    public init() {}

    var json: [String: JSONValue] {
        var options = more
        options["context"] = context.map { .int(Int64($0)) } ?? options["context"]
        options["max_batch"] = maxBatch.map { .int(Int64($0)) } ?? options["max_batch"]
        options["kv_tokens"] = kvTokens.map { .int(Int64($0)) } ?? options["kv_tokens"]
        options["threads"] = threads.map { .int(Int64($0)) } ?? options["threads"]
        options["device"] = device.map { .string($0) } ?? options["device"]
        options["pack_dir"] = packDir.map { .string($0.path) } ?? options["pack_dir"]
        return options
    }
}

/// The C callback for a call's progress; its result tells whether the call continues.
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

    /// Runs a blocking call on its own thread; cancelling the task ends the call at its next
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

/// Opens the app of a model folder; blocks.
func opened(
    _ folder: URL, _ options: EngineOptions, _ progress: UnsafePointer<wherry_app_progress>
) throws -> App {
    guard wherry_app_abi_version() == WHERRY_APP_ABI_VERSION else {
        throw WherryError.incompatible(
            "The linked core has version \(wherry_app_abi_version()) of its interface, this package "
                + "reads \(WHERRY_APP_ABI_VERSION). Make both by one wherry package.")
    }
    let plan = MLCEngine.plan(folder, options: options)
    if options.checkMemory, let plan { try requireMemory(folder, plan) }
    var given = options.json
    if let plan, plan.available != nil, plan.cache > 0 {
        given["kv_memory"] = given["kv_memory"] ?? .int(plan.cache)
    }
    let json = String(decoding: try JSONEncoder().encode(given), as: UTF8.self)
    var app: OpaquePointer?
    let status = wherry_app_open(folder.path, json, progress, &app)
    guard status == 0, let app else { throw failure(status) }
    return App(app)
}
