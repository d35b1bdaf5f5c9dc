import Foundation
import XCTest

@testable import Wherry

/// Tests of types that need no model.
final class TypeTests: XCTestCase {
    func testRequestsAreOpenAIs() throws {
        let settings = Settings(
            maxTokens: 5, temperature: 0.5, stop: ["\n"], more: ["min_p": 0.1, "stream_options": [:]])
        let json = try requestJSON(
            settings, ["messages": try jsonValue([.user("é\u{1F98A}"), .tool("c1", "4")])])
        let expected: JSONValue = [
            "max_tokens": 5, "temperature": 0.5, "stop": ["\n"], "min_p": 0.1, "stream_options": [:],
            "messages": [
                ["role": "user", "content": "é\u{1F98A}"],
                ["role": "tool", "content": "4", "tool_call_id": "c1"],
            ],
        ]
        XCTAssertEqual(try JSONDecoder().decode(JSONValue.self, from: json), expected)
    }

    func testFormatsAreOpenAIs() throws {
        let settings = Settings(
            responseFormat: .jsonSchema("{\"const\": 42}"), toolChoice: .function("now"))
        let expected: JSONValue = [
            "response_format": [
                "type": "json_schema",
                "json_schema": ["name": "answer", "schema": "{\"const\": 42}"],
            ],
            "tool_choice": ["type": "function", "function": ["name": "now"]],
        ]
        let json = try requestJSON(settings, [:])
        XCTAssertEqual(try JSONDecoder().decode(JSONValue.self, from: json), expected)
    }

    func testAnswersAreOpenAIs() throws {
        let json = """
            {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "demo",
             "choices": [{"index": 0, "message": {"role": "assistant", "content": null,
               "tool_calls": [{"id": "c1", "type": "function",
                               "function": {"name": "add", "arguments": "{}"}}]},
               "logprobs": null, "finish_reason": "tool_calls"}],
             "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}
            """
        let answer = try JSONDecoder().decode(ChatCompletion.self, from: Data(json.utf8))
        XCTAssertEqual(answer.text, "")
        XCTAssertEqual(answer.choices[0].message.toolCalls?[0].function?.name, "add")
        XCTAssertEqual(answer.choices[0].finishReason, "tool_calls")
        XCTAssertEqual(answer.usage?.totalTokens, 3)
    }

    func testAnyJSONComesBack() throws {
        let value: JSONValue = ["a": [1, 2.5, true, .null, "x"], "b": [:]]
        let again = try JSONDecoder().decode(
            JSONValue.self, from: try JSONEncoder().encode(value))
        XCTAssertEqual(again, value)
    }

    func testADeviceIsRequested() throws {
        var options = EngineOptions()
        XCTAssertNil(options.json["device"])
        options.device = "metal"
        XCTAssertEqual(options.json["device"], "metal")
        let stats = EngineStats(json: [
            "device": "cpu", "passed_over": [["code": "iphone:a14", "reason": "no Metal device"]],
        ])
        XCTAssertEqual(stats.device, "cpu")
        XCTAssertEqual(stats.passedOver, ["iphone:a14": "no Metal device"])
    }
}
