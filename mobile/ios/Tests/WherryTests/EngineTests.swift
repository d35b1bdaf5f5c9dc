import Foundation
import XCTest

@testable import Wherry

/// The test cases, which equal those of tests/mobile/kotlin/Checks.kt for the Kotlin library. The
/// file WHERRY_TEST_CASES has the model, and the answers of Python's engine:
/// {"folder", "options": {...}, "text": greedy, 24 tokens after PROMPT, "table", "answers": files
/// of TableTests, "servers": of BackgroundDownloadTests}.
struct Cases: Decodable {
    let folder: String
    let options: [String: JSONValue]
    let text: String
    let table: String
    let answers: String
    let embedder: String
    let servers: [String: URL]

    /// A folder of a server that does what its name says.
    func server(_ name: String) throws -> URL { try XCTUnwrap(servers[name]) }

    static func read() throws -> Cases {
        guard let path = ProcessInfo.processInfo.environment["WHERRY_TEST_CASES"] else {
            throw XCTSkip("WHERRY_TEST_CASES names no file: mobile/README.md says how to make it")
        }
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        return try JSONDecoder().decode(Cases.self, from: data)
    }

    func load() async throws -> MLCEngine {
        try await MLCEngine.load(URL(fileURLWithPath: folder), options: engineOptions)
    }

    var engineOptions: EngineOptions {
        var built = EngineOptions()
        built.more = options
        return built
    }
}

private let PROMPT = "Once upon a time"
private let NEW = Settings(maxTokens: 24, temperature: 0)
private let LONG = Settings(maxTokens: 400, temperature: 0, more: ["ignore_eos": true, "n": 64])

final class EngineTests: XCTestCase {
    func testAnswersArePythons() async throws {
        let cases = try Cases.read()
        let engine = try await cases.load()
        let answer = try await engine.completions.create(PROMPT, NEW)
        XCTAssertEqual(answer.text, cases.text)
        var pieces: [TextCompletion] = []
        for try await piece in engine.completions.stream(PROMPT, NEW) { pieces.append(piece) }
        XCTAssertEqual(pieces.map(\.text).joined(), cases.text)
        XCTAssertEqual(pieces.last?.choices.first?.finishReason, "length")
        let chat = try await engine.chat.completions.create([.user(PROMPT)], NEW)
        var streamed = ""
        for try await chunk in engine.chat.completions.stream([.user(PROMPT)], NEW) {
            streamed += chunk.text
        }
        XCTAssertEqual(chat.text, streamed)
        XCTAssertEqual(chat.usage?.completionTokens, 24)
    }

    func testSixteenAtOnceAreAsEachAlone() async throws {
        let engine = try await Cases.read().load()
        var alone: [String] = []
        for i in 0..<16 { alone.append(try await engine.completions.create("\(i)", NEW).text) }
        let together = try await withThrowingTaskGroup(of: (Int, String).self) { group in
            for i in 0..<16 {
                group.addTask { (i, try await engine.completions.create("\(i)", NEW).text) }
            }
            return try await group.reduce(into: [Int: String]()) { $0[$1.0] = $1.1 }
        }
        XCTAssertEqual((0..<16).map { together[$0] }, alone)
    }

    func testCancellingFreesPages() async throws {
        let engine = try await Cases.read().load()
        let before = try await engine.stats().pagesFree
        let jobs = (0..<3).map { i in
            Task {
                for try await _ in engine.completions.stream("\(i)", LONG) {}
            }
        }
        let running = Task { try await engine.completions.create(PROMPT, LONG) }
        while try await engine.stats().pagesFree == before { await Task.yield() }
        for job in jobs { job.cancel() }
        running.cancel()
        for try await _ in engine.completions.stream(PROMPT, LONG) { break }
        do {
            _ = try await running.value
            XCTFail("it was cancelled")
        } catch is CancellationError {}
        for _ in 0..<2000 {
            if try await engine.stats().pagesFree == before { break }
            try await Task.sleep(nanoseconds: 10_000_000)
        }
        let after = try await engine.stats().pagesFree
        XCTAssertEqual(after, before)
    }

    func testErrorsHaveTypes() async throws {
        let cases = try Cases.read()
        let none = URL(fileURLWithPath: "/none")
        await assertThrows { _ = try await MLCEngine.load(none, options: cases.engineOptions) } check: {
            guard case WherryError.notFound = $0 else { return false }
            return true
        }
        let folder = URL(fileURLWithPath: cases.folder)
        var options = cases.engineOptions
        options.context = Int(Int32.max)
        #if os(iOS) || os(Linux)
            await assertThrows { [options] in
                _ = try await MLCEngine.load(folder, options: options)
            } check: {
                guard case WherryError.notEnoughMemory = $0 else { return false }
                return true
            }
        #endif
        let engine = try await cases.load()
        await assertThrows { _ = try await engine.completions.create("x", Settings(temperature: -1)) }
            check: {
                guard case WherryError.request(let error) = $0 else { return false }
                return error.param == "temperature"
            }
        await assertThrows {
            for try await _ in engine.completions.stream(PROMPT, LONG) { await engine.close() }
        } check: { $0 as? WherryError == .closed }
        await assertThrows { _ = try await engine.stats() } check: { $0 as? WherryError == .closed }
        await engine.close()
    }

    func testALoadIsCancelled() async throws {
        let cases = try Cases.read()
        let loading = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try await cases.load()
        }
        await assertThrows { try await loading.value } check: { $0 is CancellationError }
    }

    func testLoadsLeakNothing() async throws {
        let cases = try Cases.read()
        var threads: [Int] = []
        for round in 0..<20 {
            let engine = try await cases.load()
            _ = try await engine.completions.create("\(round)", Settings(maxTokens: 2))
            // in other rounds the engine is freed with its last reference
            if round % 2 == 0 { await engine.close() }
            threads.append(threadsOfThisProcess())
        }
        for _ in 0..<500 where threadsOfThisProcess() > threads[5] + 4 { usleep(10_000) }
        XCTAssertLessThanOrEqual(threadsOfThisProcess(), threads[5] + 4, "\(threads)")
    }

    /// Returns the number of threads of this process; 0 if the system does not tell.
    private func threadsOfThisProcess() -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task"))?.count ?? 0
    }

    func testADownloadThatCannotBe() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        let nobody = URL(string: "http://127.0.0.1:9/model")!
        await assertThrows { try await Models.download(nobody, to: folder) } check: {
            guard case WherryError.unreachable(_, httpStatus: nil) = $0 else { return false }
            return true
        }
    }

    private func assertThrows(
        _ call: () async throws -> Void, check: (Error) -> Bool, line: UInt = #line
    ) async {
        do {
            try await call()
            XCTFail("nothing was thrown", line: line)
        } catch {
            XCTAssert(check(error), "\(error)", line: line)
        }
    }
}
