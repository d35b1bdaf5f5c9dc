import CWherry
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Fetches files for `wherry_app_download` with the system's HTTP, which knows its proxies and
/// certificates.
final class HTTP: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private let options: DownloadOptions
    private let ended = DispatchSemaphore(value: 0)
    private let lock = NSLock() // this lock guards the properties below
    private var session: URLSession?
    private var task: URLSessionDataTask?
    private var cancelled = false
    private var answer: OpaquePointer?
    private var said: Int?

    init(_ options: DownloadOptions) {
        self.options = options
        super.init()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        // seconds without a byte, after which the download tries again
        configuration.timeoutIntervalForRequest = 30
        configuration.allowsCellularAccess = options.allowsCellularAccess
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        session = URLSession(configuration: configuration, delegate: self, delegateQueue: queue)
    }

    /// HTTP status of the last answer; nil: there was none.
    var status: Int? { lock.withLock { said } }

    /// Ends the answer that is being read.
    func cancel() {
        let task = lock.withLock {
            cancelled = true
            return self.task
        }
        task?.cancel()
    }

    /// Ends the session after the last fetch, because a session retains its delegate until then.
    func end() {
        lock.withLock { session }?.invalidateAndCancel()
    }

    /// Fetches a file from a byte offset on; blocks until the answer has ended.
    func fetch(_ address: String, _ from: Int64, _ answer: OpaquePointer) {
        guard let url = URL(string: address), let session = lock.withLock({ self.session }) else {
            return wherry_app_answer_failed(answer, "it is no address")
        }
        var request = URLRequest(url: url)
        options.headers.forEach { request.setValue($1, forHTTPHeaderField: $0) }
        request.setValue("identity", forHTTPHeaderField: "Accept-Encoding")
        if from > 0 { request.setValue("bytes=\(from)-", forHTTPHeaderField: "Range") }
        let task = session.dataTask(with: request)
        let late = lock.withLock {
            self.answer = answer
            self.task = task
            said = nil
            return cancelled
        }
        task.resume()
        if late { task.cancel() }
        ended.wait()
        lock.withLock {
            self.answer = nil
            self.task = nil
        }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        let answer = lock.withLock {
            said = status
            return self.answer
        }
        let goesOn = answer.map { wherry_app_answer_status($0, Int32(status)) == 0 } ?? false
        completionHandler(goesOn ? .allow : .cancel)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        guard let answer = lock.withLock({ self.answer }) else { return }
        let stop = data.withUnsafeBytes { wherry_app_answer_bytes(answer, $0.baseAddress, $0.count) }
        if stop != 0 { dataTask.cancel() }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        if let error, let answer = lock.withLock({ self.answer }) {
            wherry_app_answer_failed(answer, error.localizedDescription)
        }
        ended.signal()
    }

    // Follows a redirect without the caller's headers, which are meant for one server only.
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping (URLRequest?) -> Void
    ) {
        let from = task.originalRequest?.url
        var next = request
        if next.url?.host != from?.host || next.url?.port != from?.port {
            options.headers.keys.forEach { next.setValue(nil, forHTTPHeaderField: $0) }
        }
        let opens = response.url?.scheme == "https" && next.url?.scheme != "https"
        completionHandler(opens ? nil : next)
    }
}
