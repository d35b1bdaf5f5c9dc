import Foundation
import XCTest

@testable import Wherry

/// Downloads from servers of tests/mobile/swift_cases.py; on Linux the session is none of the
/// background.
final class BackgroundDownloadTests: XCTestCase {
    private func folder() -> URL {
        FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    }

    private final class Reports: @unchecked Sendable {
        private let lock = NSLock()
        private var all: [LoadProgress] = []

        func add(_ one: LoadProgress) { lock.withLock { all.append(one) } }
        var last: LoadProgress? { lock.withLock { all.last } }
        var count: Int { lock.withLock { all.count } }
    }

    func testAModelComesComplete() async throws {
        let server = try Cases.read().server("whole")
        let folder = folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let reports = Reports()
        try await BackgroundDownload(server, to: folder).run { reports.add($0) }
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
        XCTAssertEqual(names, ["params_shard_0.bin", "tokenizer.json", "wherry.json"])
        XCTAssertGreaterThan(reports.count, 1)
        XCTAssertEqual(reports.last?.done, reports.last?.total)
        // A complete folder is enough without a connection, too.
        let nobody = URL(string: "http://127.0.0.1:9/model")!
        try await BackgroundDownload(nobody, to: folder).run()
    }

    func testDamageIsFetchedAgain() async throws {
        let folder = folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        try await BackgroundDownload(try Cases.read().server("damaged"), to: folder).run()
        let manifest = folder.appendingPathComponent("wherry.json")
        XCTAssert(FileManager.default.fileExists(atPath: manifest.path))
    }

    func testAServerThatRefuses() async throws {
        let folder = folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        do {
            try await BackgroundDownload(try Cases.read().server("gone"), to: folder).run()
            XCTFail("nothing was thrown")
        } catch WherryError.unreachable(let text, let status) {
            XCTAssertEqual(status, 404)
            XCTAssert(text.contains("params_shard_0.bin cannot be fetched: HTTP 404"), text)
        }
    }

    func testCancelling() async throws {
        let folder = folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let download = BackgroundDownload(try Cases.read().server("hanging"), to: folder)
        let waiting = Task { try await download.run() }
        try await Task.sleep(nanoseconds: 300_000_000)
        waiting.cancel() // ends the waiting
        await assertCancelled(waiting)
        let again = BackgroundDownload(try Cases.read().server("hanging"), to: folder)
        let task = Task { try await again.run() }
        try await Task.sleep(nanoseconds: 300_000_000)
        again.cancel() // ends the download
        await assertCancelled(task)
    }

    private func assertCancelled(_ task: Task<Void, Error>, line: UInt = #line) async {
        do {
            try await task.value
            XCTFail("nothing was thrown", line: line)
        } catch {
            XCTAssert(error is CancellationError, "\(error)", line: line)
        }
    }
}
