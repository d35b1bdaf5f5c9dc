import CWherry
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a download in the background may use and waits for.
public struct DownloadConditions: Sendable {
    /// Whether it may use mobile networks, and other networks that the system calls expensive.
    public var allowsExpensiveNetworks = false
    /// Whether the system chooses a time for it, as when the device charges.
    public var isDiscretionary = false

    public init() {}
}

/// Downloads a model while the app is suspended, or ended by the system, which fetches the files.
///
/// Make one for a folder at each start of the app, and call `run`: it fetches what is missing, and
/// finds what arrived in the meantime. If the system starts the app for a download, make it, too,
/// and hand on what `application(_:handleEventsForBackgroundURLSession:completionHandler:)` got:
///
///     download.finishEvents(completionHandler)
///
/// Requests have no headers of the app, because the system follows redirects by itself and would
/// send them to other servers, too. An instance downloads once.
public final class BackgroundDownload: NSObject, URLSessionDownloadDelegate, @unchecked Sendable {
    /// Name of the system's session for this folder.
    public let identifier: String
    private let url: URL
    private let folder: URL
    private let lock = NSLock() // this lock guards the properties below
    private var session: URLSession?
    private var sizes: [Int: Int64] = [:] // of files that are awaited, by their tasks
    private var came: [Int: Int64] = [:] // bytes, by task
    private var ended: Set<Int> = [] // tasks
    private var failure: Error?
    private var waiter: CheckedContinuation<Void, Error>?
    private var report: (@Sendable (LoadProgress) -> Void)?
    private var eventsEnd: (@Sendable () -> Void)?

    /// - Parameters:
    ///   - url: Address of the model's folder, as in `Models.download`.
    ///   - folder: Folder to create, as in `Models.download`.
    public init(
        _ url: URL, to folder: URL, conditions: DownloadConditions = DownloadConditions()
    ) {
        self.url = url
        self.folder = folder
        identifier = "dev.wherry.download.\(folder.lastPathComponent)"
        super.init()
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        session = URLSession(
            configuration: configuration(identifier, conditions), delegate: self,
            delegateQueue: queue)
    }

    /// Waits until the model is complete in its folder, which `MLCEngine.load` then takes.
    ///
    /// Cancelling the task ends the waiting only; `cancel` ends the download.
    ///
    /// - Parameter progress: Callback with the phases of `Models.download`.
    public func run(progress: @escaping @Sendable (LoadProgress) -> Void = { _ in }) async throws {
        defer { lock.withLock { session }?.finishTasksAndInvalidate() }
        // Without a connection a complete folder is enough, which `Models.download` knows.
        if let manifest = await manifest() {
            let missing = try missingFiles(manifest, folder)
            lock.withLock { report = progress }
            await fetch(missing)
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { wait($0) }
            } onCancel: {
                resume(CancellationError())
            }
        }
        try await Models.download(url, to: folder, progress: progress)
    }

    /// Ends the download; files that are complete stay.
    public func cancel() {
        lock.withLock { session }?.invalidateAndCancel()
        resume(CancellationError())
    }

    /// Takes the handler by which the app tells the system that it has seen all events.
    public func finishEvents(_ handler: @escaping @Sendable () -> Void) {
        lock.withLock { eventsEnd = handler }
    }

    private func manifest() async -> Data? {
        let request = URLRequest(
            url: url.appendingPathComponent("wherry.json"),
            cachePolicy: .reloadIgnoringLocalCacheData)
        let answer = try? await URLSession.shared.data(for: request)
        guard let (data, response) = answer else { return nil }
        return (response as? HTTPURLResponse)?.statusCode == 200 ? data : nil
    }

    /// Asks the system for files that no earlier start of the app has asked for.
    private func fetch(_ files: [MissingFile]) async {
        guard let session = lock.withLock({ self.session }) else { return }
        let running = await withCheckedContinuation { continuation in
            session.getAllTasks { continuation.resume(returning: $0) }
        }
        let byPart = Dictionary(
            running.map { ($0.taskDescription ?? "", $0) }, uniquingKeysWith: { first, _ in first })
        for file in files {
            let address = url.appendingPathComponent(file.name)
            let task = byPart[file.part] ?? session.downloadTask(with: address)
            task.taskDescription = file.part
            lock.withLock {
                if !ended.contains(task.taskIdentifier) { sizes[task.taskIdentifier] = file.size }
            }
            task.resume()
        }
    }

    private func wait(_ continuation: CheckedContinuation<Void, Error>) {
        lock.withLock { waiter = continuation }
        if Task.isCancelled { return resume(CancellationError()) }
        endIfDone()
    }

    private func endIfDone() {
        let (done, failure) = lock.withLock { (sizes.isEmpty, self.failure) }
        if done || failure != nil { resume(failure) }
    }

    private func resume(_ error: Error?) {
        let waiter = lock.withLock {
            defer { self.waiter = nil }
            return self.waiter
        }
        if let error { waiter?.resume(throwing: error) } else { waiter?.resume() }
    }

    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytes: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        let (report, done, total) = lock.withLock {
            // A server may send more than the manifest lists, and fill the disk.
            if let size = sizes[downloadTask.taskIdentifier], totalBytesWritten > size {
                let address = downloadTask.originalRequest?.url?.absoluteString ?? "a file"
                let text = "\(address) has more than the \(size) bytes that the manifest lists"
                failure = failure ?? WherryError.damaged(text)
                downloadTask.cancel()
            }
            came[downloadTask.taskIdentifier] = totalBytesWritten
            let arrived = sizes.keys.map { came[$0] ?? 0 }
            return (self.report, arrived.reduce(0, +), sizes.values.reduce(0, +))
        }
        report?(LoadProgress(phase: "download", done: min(done, total), total: total))
    }

    public func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL
    ) {
        let status = (downloadTask.response as? HTTPURLResponse)?.statusCode ?? 0
        let address = downloadTask.originalRequest?.url?.absoluteString ?? "a file"
        guard status == 200, let name = downloadTask.taskDescription else {
            let error = WherryError.unreachable(
                "\(address) cannot be fetched: HTTP \(status)", httpStatus: status)
            return lock.withLock { failure = failure ?? error }
        }
        // The path of an app's folders may be another one after an update: only the name is kept.
        let part = folder.appendingPathComponent(name)
        do {
            try? FileManager.default.removeItem(at: part)
            try FileManager.default.moveItem(at: location, to: part)
        } catch {
            lock.withLock { failure = failure ?? error }
        }
    }

    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?
    ) {
        lock.withLock {
            ended.insert(task.taskIdentifier)
            if let error, sizes[task.taskIdentifier] != nil {
                let text = error.localizedDescription
                failure = failure ?? WherryError.unreachable(text, httpStatus: nil)
            }
            sizes[task.taskIdentifier] = nil
        }
        endIfDone()
    }

    #if canImport(Darwin)
        public func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
            let handler = lock.withLock { eventsEnd }
            DispatchQueue.main.async { handler?() }
        }
    #endif
}

private func configuration(_ identifier: String, _ conditions: DownloadConditions)
    -> URLSessionConfiguration
{
    #if canImport(Darwin)
        let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
        configuration.isDiscretionary = conditions.isDiscretionary
        configuration.sessionSendsLaunchEvents = true
        configuration.allowsExpensiveNetworkAccess = conditions.allowsExpensiveNetworks
    #else
        let configuration = URLSessionConfiguration.default
    #endif
    configuration.allowsCellularAccess = conditions.allowsExpensiveNetworks
    configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
    return configuration
}

/// A file that a folder lacks, as `wherry_app_missing` says.
struct MissingFile: Decodable {
    let name: String
    let size: Int64
    /// Name in the folder until `wherry_app_download` has checked the file.
    let part: String
}

func missingFiles(_ manifest: Data, _ folder: URL) throws -> [MissingFile] {
    var json: UnsafeMutablePointer<CChar>?
    let status = manifest.withUnsafeBytes {
        wherry_app_missing($0.bindMemory(to: CChar.self).baseAddress, $0.count, folder.path, &json)
    }
    guard status == 0, let json else { throw failure(status) }
    defer { wherry_app_free(json) }
    return try JSONDecoder().decode([MissingFile].self, from: Data(String(cString: json).utf8))
}
