import CWherry
import Foundation

/// How a model is fetched.
public struct DownloadOptions: Sendable {
    /// Of requests to the server, not to others that it redirects to: ["Authorization": "Bearer ..."].
    public var headers: [String: String] = [:]
    /// Whether files of a complete folder are read, so that damaged ones are fetched again; else
    /// their sizes are compared.
    public var verify = false
    /// Whether mobile networks may be used.
    public var allowsCellularAccess = true

    public init() {}
}

/// Models that an app fetches once it is installed.
public enum Models {
    /// Bring a model to `folder`, which `MLCEngine.load` then takes.
    ///
    /// What is there and whole is not fetched again, and a folder that is complete needs no network:
    /// call it at each start. An interrupted download resumes; cancelling the task
    /// ends it. A model that is replaced can be loaded until the new one is complete.
    ///
    /// - Parameters:
    ///   - url: Of the folder: `assets/NAME` of what `wherry package` has written, on any server.
    ///   - folder: Is made, and left out of backups. In Application Support, say.
    ///   - progress: "check" and "download", both in bytes; called on a thread of the download.
    public static func download(
        _ url: URL, to folder: URL, options: DownloadOptions = DownloadOptions(),
        progress: @escaping @Sendable (LoadProgress) -> Void = { _ in }
    ) async throws {
        let http = HTTP(options)
        defer { http.end() }
        let watcher = Watcher(progress, onCancel: { http.cancel() })
        try await watcher.run { try downloaded(url, folder, options, http, $0) }
        #if canImport(Darwin)
            var values = URLResourceValues()
            values.isExcludedFromBackup = true
            var place = folder
            try? place.setResourceValues(values)
        #endif
    }
}

private func downloaded(
    _ url: URL, _ folder: URL, _ options: DownloadOptions, _ http: HTTP,
    _ progress: UnsafePointer<wherry_app_progress>
) throws {
    var fetcher = wherry_app_fetcher(
        size: MemoryLayout<wherry_app_fetcher>.size,
        context: Unmanaged.passUnretained(http).toOpaque(),
        fetch: fetched)
    let json = options.verify ? "{\"verify\": true}" : "{}"
    let status = wherry_app_download(url.absoluteString, folder.path, json, &fetcher, progress)
    if status == 0 { return }
    let error = failure(status)
    if case WherryError.unreachable(let text, _) = error {
        throw WherryError.unreachable(text, httpStatus: http.status)
    }
    throw error
}

private let fetched:
    @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>?, Int64, OpaquePointer?) -> Void = {
        context, url, from, answer in
        guard let context, let url, let answer else { return }
        let http = Unmanaged<HTTP>.fromOpaque(context).takeUnretainedValue()
        http.fetch(String(cString: url), from, answer)
    }
