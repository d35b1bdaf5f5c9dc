import CWherry
import Foundation

/// A native `wherry_app` and the calls that use it, from any thread, none after `close`.
final class App: @unchecked Sendable {
    private let handle: OpaquePointer
    private let condition = NSCondition() // this condition's lock guards the properties below
    private var calls = 0
    private var closed = false
    private var active = false // whether a task waits until the engine is idle
    private var listeners: [ObjectIdentifier: Listener] = [:] // listeners of running requests

    init(_ handle: OpaquePointer) {
        self.handle = handle
    }

    // The engine's own thread may release the last reference, and closing waits for that thread.
    deinit {
        guard !closed else { return }
        let handle = UInt(bitPattern: self.handle)
        DispatchQueue.global().async { wherry_app_close(OpaquePointer(bitPattern: handle)) }
    }

    var isClosed: Bool { condition.withLock { closed } }

    /// Starts a request; `take` gets each object, and whether it is the last, on the engine's
    /// thread.
    func start(_ request: Data, _ take: @escaping @Sendable (Data, Bool) -> Void) throws -> Int64 {
        let listener = Listener()
        listener.take = { [weak self, weak listener] json, last in
            take(json, last)
            if last, let self, let listener { self.ended(listener) }
        }
        condition.withLock { listeners[ObjectIdentifier(listener)] = listener }
        do {
            let id = try use { app in try started(app, request, listener) }
            condition.withLock { listener.id = id }
            return id
        } catch {
            ended(listener)
            throw error
        }
    }

    /// Aborts a request; nothing happens if it has ended already, or the engine is closed.
    func abort(_ id: Int64) {
        _ = try? use { app in wherry_app_abort(app, id) }
    }

    func abortAll() {
        let ids = condition.withLock {
            active = false
            return listeners.values.compactMap(\.id)
        }
        ids.forEach(abort)
    }

    /// Registers the caller as the task that waits for running requests; false if another one
    /// waits.
    func beginActivity() -> Bool {
        condition.withLock {
            defer { active = true }
            return !active
        }
    }

    /// Waits until no request is running.
    func waitUntilIdle() {
        condition.withLock {
            while !listeners.isEmpty { condition.wait() }
            active = false
        }
    }

    func stats() throws -> Data {
        try use { app in
            var json: UnsafeMutablePointer<CChar>?
            let status = wherry_app_stats(app, &json)
            guard status == 0, let json else { throw failure(status) }
            defer { wherry_app_free(json) }
            return Data(bytes: json, count: strlen(json))
        }
    }

    func trim() throws {
        try use { app in
            let status = wherry_app_trim(app)
            if status != 0 { throw failure(status) }
        }
    }

    /// Aborts running requests and frees the model; blocks, so callbacks must not call it. Later
    /// calls do nothing.
    func close() {
        let first = condition.withLock {
            if closed { return false }
            closed = true
            while calls > 0 { condition.wait() }
            return true
        }
        if first { wherry_app_close(handle) }
    }

    private func ended(_ listener: Listener) {
        condition.withLock {
            listeners[ObjectIdentifier(listener)] = nil
            condition.broadcast()
        }
    }

    private func use<Result>(_ call: (OpaquePointer) throws -> Result) throws -> Result {
        try condition.withLock {
            if closed { throw WherryError.closed }
            calls += 1
        }
        defer {
            condition.withLock {
                calls -= 1
                condition.broadcast()
            }
        }
        return try call(handle)
    }
}

/// The listener to one request; the engine holds a reference to it until the last call.
private final class Listener: @unchecked Sendable {
    var take: (Data, Bool) -> Void = { _, _ in }
    var id: Int64?
}

private func started(_ app: OpaquePointer, _ request: Data, _ listener: Listener) throws -> Int64 {
    let context = Unmanaged.passRetained(listener)
    var id: Int64 = 0
    let status = request.withUnsafeBytes { bytes in
        wherry_app_start(
            app, bytes.bindMemory(to: CChar.self).baseAddress, bytes.count, onChunk,
            context.toOpaque(), &id)
    }
    if status != 0 {
        context.release() // the start failed, so the engine will not call the listener
        throw failure(status)
    }
    return id
}

private let onChunk: wherry_app_on_chunk = { context, json, length, last in
    guard let context, let json else { return }
    let listener = Unmanaged<Listener>.fromOpaque(context)
    listener.takeUnretainedValue().take(Data(bytes: json, count: length), last != 0)
    if last != 0 { listener.release() }
}
