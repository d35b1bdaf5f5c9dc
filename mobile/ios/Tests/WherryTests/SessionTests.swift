import Foundation
import XCTest

@testable import Wherry

private let STORY_PROMPT = "Tell me a story about a fox."
private let BRIEF = "You tell stories."
private let NEW = Settings(maxTokens: 12, temperature: 0)

/// Conversations, against requests that send all of their messages.
final class SessionTests: XCTestCase {
    private func engine() async throws -> MLCEngine {
        let cases = try Cases.read()
        var options = cases.engineOptions
        options.context = 512
        return try await MLCEngine.load(URL(fileURLWithPath: cases.folder), options: options)
    }

    func testASessionKeepsTheConversation() async throws {
        let engine = try await engine()
        let session = ChatSession(engine, system: BRIEF, settings: NEW)
        let first = try await session.send(STORY_PROMPT)
        var streamed = ""
        for try await chunk in session.stream("And a bear?") { streamed += chunk.text }
        let turns: [Message] = [.user(STORY_PROMPT), .assistant(first.text), .user("And a bear?")]
        let alone = try await engine.chat.completions.create([.system(BRIEF)] + turns, NEW)
        XCTAssertEqual(streamed, alone.text)
        let said = await session.messages
        XCTAssertEqual(said, turns + [.assistant(streamed)])
        let undone = try await session.undo()
        XCTAssertEqual(undone, turns[2])
        let restored = ChatSession(
            engine, system: BRIEF, settings: NEW, messages: await session.messages)
        let again = try await restored.send("And a bear?")
        XCTAssertEqual(again.text, streamed)
        XCTAssertGreaterThan(try XCTUnwrap(again.timings).outputPerSecond, 0)
        XCTAssert(String(decoding: again.json, as: UTF8.self).contains("\"predicted_n\""))
    }

    func testTheOldestTurnsAreLeftOut() async throws {
        let session = ChatSession(try await engine(), system: BRIEF, settings: NEW)
        for i in 0..<7 {
            let text = String(repeating: "\(i) times a fox met a bear in the wood. ", count: 8)
            _ = try await session.send(text)
        }
        let (dropped, kept) = (await session.droppedMessages, await session.messages)
        XCTAssert(dropped > 0 && dropped % 2 == 0, "\(dropped)")
        XCTAssertEqual(kept.count, 14)
    }

    func testATurnThatFailsLeavesNothing() async throws {
        let session = ChatSession(try await engine(), settings: NEW)
        do {
            _ = try await session.send(String(repeating: "a fox ", count: 4000))
            XCTFail("nothing was thrown")
        } catch WherryError.request(let error) {
            XCTAssertEqual(error.code, "context_length_exceeded")
        }
        let left = await session.messages
        XCTAssertEqual(left, [])
        var seen = ""
        for try await chunk in session.stream("More.") {
            seen += chunk.text
            if !seen.isEmpty { break }
        }
        // The turn ends on its own task.
        while try await session.messagesIfIdle().isEmpty { try await Task.sleep(nanoseconds: 5_000_000) }
        let said = await session.messages
        XCTAssertEqual(said.first, .user("More."))
        XCTAssert(said.last?.content?.hasPrefix(seen) ?? false, "\(said)")
    }

    func testNumbersThatJSONLacksAreErrors() async throws {
        let session = ChatSession(try await engine(), settings: Settings(temperature: .nan))
        do {
            _ = try await session.send(STORY_PROMPT)
            XCTFail("nothing was thrown")
        } catch WherryError.invalidArgument(let text) {
            XCTAssert(text.contains("temperature"), text)
        }
    }

    func testToolsAreCalledAndAnswered() async throws {
        struct Weather: Tool {
            struct Arguments: Decodable { let city: String }
            let name = "weather"
            let description = "The weather of a city"
            let parameters: JSONValue? = [
                "type": "object", "properties": ["city": ["const": "Oslo"]], "required": ["city"],
                "additionalProperties": false,
            ]
            func call(_ arguments: Arguments) async throws -> String { "rain in \(arguments.city)" }
        }
        let settings = Settings(maxTokens: 60, temperature: 0, toolChoice: .function("weather"))
        let session = ChatSession(
            try await engine(), tools: [Weather()], settings: settings, maxToolRounds: 1)
        let last: ChatCompletion
        do {
            last = try await session.send("Do I need an umbrella?")
        } catch WherryError.request(let error) where error.code == "unsupported_parameter" {
            throw XCTSkip("the library was built without grammars")
        }
        let said = await session.messages
        XCTAssertEqual(said.map(\.role), ["user", "assistant", "tool", "assistant"])
        XCTAssertEqual(said[1].toolCalls?.map(\.function?.name), ["weather"])
        XCTAssertEqual(said[2].content, "rain in Oslo")
        XCTAssertEqual(said[2].toolCallID, said[1].toolCalls?.first?.id)
        XCTAssertEqual(said[3].content, last.text)
    }
}

extension ChatSession {
    /// The messages when no turn runs, else none.
    fileprivate func messagesIfIdle() throws -> [Message] { isIdle ? messages : [] }
}
