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

    /// A value that is not read: rows have strings that Swift's decoder refuses.
    private struct Present: Decodable {
        init(from decoder: Decoder) throws {}
    }

    private struct Fields: Decodable {
        let messages: Present?
        let query: Present?
        let input: Present?
        let task: String?
        let stream: Bool?

        /// What a request asks for whose answer is numbers.
        var numbers: String? { task ?? (query != nil ? "rerank" : input != nil ? "embed" : nil) }
    }

    func testTheTableIsAnswered() async throws {
        let cases = try Cases.read()
        let table = try Data(contentsOf: URL(fileURLWithPath: cases.table))
        var answers: [[[String]]] = []
        for group in try JSONDecoder().decode([Group].self, from: table) {
            var options = cases.engineOptions
            options.more.merge(group.options) { $1 }
            let folder = URL(fileURLWithPath: group.folder)
            let engine = try await MLCEngine.load(folder, options: options)
            var answered: [[String]] = []
            for request in group.requests { answered.append(try await objects(engine, request)) }
            answers.append(answered)
            await engine.close()
        }
        try JSONEncoder().encode(answers).write(to: URL(fileURLWithPath: cases.answers))
    }

    /// Returns the JSON of all objects that answer a request, after decoding each as the type that
    /// apps get.
    private func objects(_ engine: MLCEngine, _ request: String) async throws -> [String] {
        let data = Data(request.utf8)
        let fields = try JSONDecoder().decode(Fields.self, from: data)
        let app = engine.chat.completions.app
        do {
            let pieces = try await collected(app, data)
            for json in pieces {
                if let task = fields.numbers {
                    try decode(task, json)
                    continue
                }
                switch (fields.messages != nil, fields.stream ?? false) {
                case (true, true): _ = try JSONDecoder().decode(ChatCompletionChunk.self, from: json)
                case (true, false): _ = try JSONDecoder().decode(ChatCompletion.self, from: json)
                default: _ = try JSONDecoder().decode(TextCompletion.self, from: json)
                }
            }
            return pieces.map { String(decoding: $0, as: UTF8.self) }
        } catch WherryError.request(let error) {
            return [String(decoding: try JSONEncoder().encode(["error": error]), as: UTF8.self)]
        }
    }

    private func decode(_ task: String, _ json: Data) throws {
        switch task {
        case "rerank": _ = try JSONDecoder().decode(Ranking.self, from: json)
        case "classify": _ = try JSONDecoder().decode(Classification.self, from: json)
        default: _ = try JSONDecoder().decode(Embeddings.self, from: json)
        }
    }

    private func collected(_ app: App, _ request: Data) async throws -> [Data] {
        var objects: [Data] = []
        for try await object in answers(app, request, as: AnyAnswer.self) {
            objects.append(object.json)
        }
        return objects
    }
}

/// An answer of any endpoint, of which only the JSON is read.
private struct AnyAnswer: Answer {
    var json = Data()
    init(from decoder: Decoder) throws {}
}
