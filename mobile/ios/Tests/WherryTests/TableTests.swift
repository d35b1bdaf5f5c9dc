import Foundation
import XCTest

@testable import Wherry

/// Answers the requests of tests/mobile/request_table.py, which Python compares with its own answers.
final class TableTests: XCTestCase {
    private struct Group: Decodable {
        let folder: String
        let options: [String: JSONValue]
        let requests: [String]
    }

    private struct Fields: Decodable {
        let messages: JSONValue?
        let stream: Bool?
    }

    func testTheTableIsAnswered() async throws {
        let cases = try Cases.read()
        let table = try Data(contentsOf: URL(fileURLWithPath: cases.table))
        var found: [[[JSONValue]]] = []
        for group in try JSONDecoder().decode([Group].self, from: table) {
            var options = cases.engineOptions
            options.more.merge(group.options) { $1 }
            let folder = URL(fileURLWithPath: group.folder)
            let engine = try await MLCEngine.load(folder, options: options)
            var answered: [[JSONValue]] = []
            for request in group.requests { answered.append(try await objects(engine, request)) }
            found.append(answered)
            await engine.close()
        }
        try JSONEncoder().encode(found).write(to: URL(fileURLWithPath: cases.answers))
    }

    /// Returns all objects that answer a request, after decoding each as the type that apps get.
    private func objects(_ engine: MLCEngine, _ request: String) async throws -> [JSONValue] {
        let data = Data(request.utf8)
        let fields = try JSONDecoder().decode(Fields.self, from: data)
        let app = engine.chat.completions.app
        do {
            let found = try await collected(app, data)
            for object in found {
                let json = try JSONEncoder().encode(object)
                switch (fields.messages != nil, fields.stream ?? false) {
                case (true, true): _ = try JSONDecoder().decode(ChatCompletionChunk.self, from: json)
                case (true, false): _ = try JSONDecoder().decode(ChatCompletion.self, from: json)
                default: _ = try JSONDecoder().decode(TextCompletion.self, from: json)
                }
            }
            return found
        } catch WherryError.request(let error) {
            let json = try JSONEncoder().encode(["error": error])
            return [try JSONDecoder().decode(JSONValue.self, from: json)]
        }
    }

    private func collected(_ app: App, _ request: Data) async throws -> [JSONValue] {
        var found: [JSONValue] = []
        for try await object in answers(app, request, as: JSONValue.self) { found.append(object) }
        return found
    }
}
