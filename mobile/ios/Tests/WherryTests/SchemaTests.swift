import Foundation
import XCTest

@testable import Wherry

private enum Colour: String, CaseIterable, Codable { case red, blue }

private struct Fox: Codable, Equatable {
    let colour: Colour
    let tails: Int8
    let tame: Bool
}

private struct Forest: Codable, Equatable {
    let name: String
    let trees: Int
    let foxes: [Fox]
    let ages: [String: Double]?
    let planted: Date?
    let note: String?

    enum CodingKeys: String, CodingKey {
        case name = "forest_name"
        case trees, foxes, ages, planted, note
    }
}

private final class Node: Decodable {
    let value: UInt64
    let next: Node?
    let others: [Node]
}

private struct Even: Described, Equatable {
    let value: Int
    static let jsonSchema = "{\"type\": \"integer\", \"multipleOf\": 2}"

    init(from decoder: Decoder) throws {
        value = try decoder.singleValueContainer().decode(Int.self)
    }
}

private struct Pair: Decodable {
    let left: Even
    let right: Even?
}

private enum Bare: CaseIterable, Decodable {
    case one
    init(from decoder: Decoder) throws { self = .one }
}

/// Tests of schemas that Decodable types give, and of answers that are numbers.
final class SchemaTests: XCTestCase {
    private func schema<Value: Decodable>(_ type: Value.Type) throws -> JSONValue {
        try JSONDecoder().decode(JSONValue.self, from: Data(jsonSchema(of: type).utf8))
    }

    func testAStructHasItsProperties() throws {
        let fox: JSONValue = [
            "type": "object",
            "properties": [
                "colour": ["enum": ["red", "blue"]],
                "tails": ["type": "integer", "minimum": -128, "maximum": 127],
                "tame": ["type": "boolean"],
            ],
            "required": ["colour", "tails", "tame"], "additionalProperties": false,
        ]
        XCTAssertEqual(try schema(Fox.self), fox)
        let ages: JSONValue = ["type": "object", "additionalProperties": ["type": "number"]]
        let date: JSONValue = ["type": "string", "format": "date-time"]
        func optional(_ schema: JSONValue) -> JSONValue { ["anyOf": [schema, ["type": "null"]]] }
        let forest: JSONValue = [
            "type": "object",
            "properties": [
                "forest_name": ["type": "string"], "trees": ["type": "integer"],
                "foxes": ["type": "array", "items": fox], "ages": optional(ages),
                "planted": optional(date), "note": optional(["type": "string"]),
            ],
            "required": ["forest_name", "trees", "foxes"], "additionalProperties": false,
        ]
        XCTAssertEqual(try schema(Forest.self), forest)
        let text = try jsonSchema(of: Forest.self)
        let order = ["forest_name", "trees", "foxes", "ages", "planted", "note"].map {
            text.range(of: "\"\($0)\":")!.lowerBound
        }
        XCTAssertEqual(order, order.sorted()) // the order of properties is that of the answer
    }

    func testATypeMayHoldItself() throws {
        let node: JSONValue = ["$ref": "#/$defs/Node"]
        let recursive = try schema(Node.self)
        guard case .object(let fields) = recursive, case .object(let defined)? = fields["$defs"],
            case .object(let own)? = defined["Node"]
        else { return XCTFail("\(recursive)") }
        XCTAssertEqual(fields["$ref"], "#/$defs/Node")
        let properties: JSONValue = [
            "value": ["type": "integer", "minimum": 0],
            "next": ["anyOf": [node, ["type": "null"]]],
            "others": ["type": "array", "items": node],
        ]
        XCTAssertEqual(own["properties"], properties)
    }

    func testATypeMayGiveItsOwn() throws {
        guard case .object(let fields) = try schema(Pair.self) else { return XCTFail("no object") }
        let even: JSONValue = ["type": "integer", "multipleOf": 2]
        let properties: JSONValue = ["left": even, "right": ["anyOf": [even, ["type": "null"]]]]
        XCTAssertEqual(fields["properties"], properties)
        XCTAssertThrowsError(try jsonSchema(of: Bare.self)) {
            guard case WherryError.invalidArgument(let text) = $0 else { return XCTFail("\($0)") }
            XCTAssertTrue(text.contains("make it Described"), text)
        }
    }

    func testAnswersAreDecoded() throws {
        let text = "{\"forest_name\": \"Oak\", \"trees\": 3, \"foxes\": [], "
            + "\"planted\": \"2026-01-02T03:04:05Z\"}"
        XCTAssertEqual(try decoded(Forest.self, text).planted?.timeIntervalSince1970, 1767323045)
        XCTAssertThrowsError(try decoded(Fox.self, "{\"colour\": \"re")) {
            guard case WherryError.unreadableAnswer(_, let text) = $0 else { return XCTFail("\($0)") }
            XCTAssertEqual(text, "{\"colour\": \"re")
        }
    }

    func testAModelWritesAType() async throws {
        let engine = try await Cases.read().load()
        let messages = [Message.user("Tell me of a fox.")]
        do {
            let settings = Settings(maxTokens: 64, temperature: 0)
            _ = try await engine.chat.completions.parse(Fox.self, messages, settings)
        } catch WherryError.request(let error) {
            XCTAssertEqual(error.code, "unsupported_parameter") // built without grammars
        }
        await engine.close()
    }

    func testNumbersHaveTypes() async throws {
        let cases = try Cases.read()
        let folder = URL(fileURLWithPath: cases.embedder)
        let engine = try await MLCEngine.load(folder, options: cases.engineOptions)
        let texts = ["w7 w9 w11", "w20"]
        let short = try await engine.embed(texts, VectorSettings(dimensions: 4)).vectors
        let plain = VectorSettings(more: ["encoding_format": "float"])
        let full = try await engine.embed(texts, plain)
        XCTAssertEqual(short[0], Array(full.vectors[0].prefix(4)))
        XCTAssertEqual(full.usage.promptTokens, 8)
        let documents = ["w20 w21", "w7 w9 w12"]
        let best = try await engine.rerank("w7 w9", documents, VectorSettings(topN: 1)).results
        XCTAssertEqual(best.map(\.index), [1])
        XCTAssertEqual(best[0].document?.text, documents[1])
        do {
            _ = try await engine.classify(texts)
            XCTFail("the model has no classes")
        } catch WherryError.request(let error) {
            XCTAssertEqual(error.code, "no_classes")
        }
        await engine.close()
    }

    func testAPlanBoundsTheCache() throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let manifest = """
            {"memory": {"weights": 300000000, "workspace": 7000000, "kv_per_token": 4096,
             "slot": 20971520}, "deployment": {"context": 8192, "max_batch": 4}}
            """
        try Data(manifest.utf8).write(to: folder.appendingPathComponent("wherry.json"))
        var options = EngineOptions()
        options.memory = 1_000_000_000
        let plan = try XCTUnwrap(MLCEngine.plan(folder, options: options))
        XCTAssertEqual(plan.state, 20_971_520 * 6)
        XCTAssertEqual(plan.cache, 5120 * 4 * 8192)
        XCTAssertEqual(plan.least, 307_000_000 + plan.state + 5120 * 512)
        XCTAssertEqual(plan.total, 307_000_000 + plan.state + plan.cache)
        XCTAssertTrue(plan.fits)
        options.memory = 450_000_000
        let less = try XCTUnwrap(MLCEngine.plan(folder, options: options))
        XCTAssertEqual(less.cache, (450_000_000 - 307_000_000 - less.state) / 2)
        options.memory = 400_000_000
        XCTAssertFalse(try XCTUnwrap(MLCEngine.plan(folder, options: options)).fits)
    }
}
