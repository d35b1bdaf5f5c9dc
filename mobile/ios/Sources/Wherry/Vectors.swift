import Foundation

/// Fields of requests for embeddings, rankings and classes, under the server's names.
public struct VectorSettings: Codable, Equatable, Sendable, RequestSettings {
    /// Whether texts that are too long are cut; otherwise they are errors.
    public var truncate: Bool?
    /// Number of an embedding's leading dimensions that are returned; nil: all.
    public var dimensions: Int?
    /// Name of the model's prompt that precedes texts which are embedded.
    public var promptName: String?
    /// Maximum number of documents in a ranking; nil: all.
    public var topN: Int?
    /// What a reranker that reads a prompt judges by.
    public var instruction: String?
    /// Further fields of the request.
    public var more: [String: JSONValue] = [:]

    public init(
        truncate: Bool? = nil, dimensions: Int? = nil, promptName: String? = nil, topN: Int? = nil,
        instruction: String? = nil, more: [String: JSONValue] = [:]
    ) {
        self.truncate = truncate
        self.dimensions = dimensions
        self.promptName = promptName
        self.topN = topN
        self.instruction = instruction
        self.more = more
    }

    enum CodingKeys: String, CodingKey {
        case truncate, dimensions, instruction
        case promptName = "prompt_name"
        case topN = "top_n"
    }
}

/// Tokens that a request for numbers read.
public struct VectorUsage: Codable, Equatable, Sendable {
    public var promptTokens: Int
    public var totalTokens: Int

    enum CodingKeys: String, CodingKey {
        case promptTokens = "prompt_tokens"
        case totalTokens = "total_tokens"
    }
}

/// Embeddings of texts.
public struct Embeddings: Codable, Equatable, Sendable {
    public struct Row: Codable, Equatable, Sendable {
        public var index: Int
        public var embedding: Vector
    }
    /// A vector, as numbers or as little-endian float32 in base64.
    public struct Vector: Codable, Equatable, Sendable {
        public var values: [Float]

        public init(from decoder: Decoder) throws {
            let value = try decoder.singleValueContainer()
            guard let text = try? value.decode(String.self) else {
                values = try value.decode([Float].self)
                return
            }
            let bytes = [UInt8](Data(base64Encoded: text) ?? Data())
            values = stride(from: 0, to: bytes.count - 3, by: 4).map { at in
                let bits = (0..<4).reduce(UInt32(0)) { $0 | UInt32(bytes[at + $1]) << (8 * $1) }
                return Float(bitPattern: bits)
            }
        }

        public func encode(to encoder: Encoder) throws { try values.encode(to: encoder) }
    }
    public var data: [Row]
    public var model: String
    public var usage: VectorUsage
    /// The whole object as JSON.
    public internal(set) var json = Data()

    enum CodingKeys: String, CodingKey {
        case data, model, usage
    }
    /// The vector of each text, in the order of the texts.
    public var vectors: [[Float]] { data.map(\.embedding.values) }
}

/// Documents by how well they match a query, the best first.
public struct Ranking: Codable, Equatable, Sendable {
    public struct Row: Codable, Equatable, Sendable {
        public struct Document: Codable, Equatable, Sendable {
            public var text: String
        }
        /// The document's place in the request.
        public var index: Int
        /// How well it matches the query: the higher, the better.
        public var score: Double
        /// The document; nil: the request asked to leave it out.
        public var document: Document?

        enum CodingKeys: String, CodingKey {
            case index, document
            case score = "relevance_score"
        }
    }
    public var id: String
    public var model: String
    public var results: [Row]
    public var usage: VectorUsage
    /// The whole object as JSON.
    public internal(set) var json = Data()

    enum CodingKeys: String, CodingKey {
        case id, model, results, usage
    }
}

/// The classes of texts.
public struct Classification: Codable, Equatable, Sendable {
    public struct Row: Codable, Equatable, Sendable {
        public var index: Int
        /// Name of the most probable class.
        public var label: String
        /// Probabilities of all classes, in the order of the model's labels.
        public var probabilities: [Double]

        enum CodingKeys: String, CodingKey {
            case index, label
            case probabilities = "probs"
        }
    }
    public var id: String
    public var created: Int64
    public var model: String
    /// The class of each text, in the order of the texts.
    public var data: [Row]
    public var usage: VectorUsage
    /// The whole object as JSON.
    public internal(set) var json = Data()

    enum CodingKeys: String, CodingKey {
        case id, created, model, data, usage
    }
}

extension Embeddings: Answer {}
extension Ranking: Answer {}
extension Classification: Answer {}

extension MLCEngine {
    /// Returns a vector for each text, of a model for embeddings; long texts are errors.
    public nonisolated func embed(
        _ texts: [String], _ settings: VectorSettings = VectorSettings()
    ) async throws -> Embeddings {
        var settings = settings
        // A vector in base64 is a third of its numbers as text.
        settings.more["encoding_format"] = settings.more["encoding_format"] ?? "base64"
        return try await numbers("embed", ["input": array(texts)], settings, as: Embeddings.self)
    }

    /// Ranks documents by how well they match a query, by a reranker or a model for embeddings.
    public nonisolated func rerank(
        _ query: String, _ documents: [String], _ settings: VectorSettings = VectorSettings()
    ) async throws -> Ranking {
        let fields: [String: JSONValue] = ["query": .string(query), "documents": array(documents)]
        return try await numbers("rerank", fields, settings, as: Ranking.self)
    }

    /// Returns the class of each text, by a model for sequence classification.
    public nonisolated func classify(
        _ texts: [String], _ settings: VectorSettings = VectorSettings()
    ) async throws -> Classification {
        let fields = ["input": array(texts)]
        return try await numbers("classify", fields, settings, as: Classification.self)
    }

    private nonisolated func numbers<Object: Answer>(
        _ task: String, _ fields: [String: JSONValue], _ settings: VectorSettings,
        as type: Object.Type
    ) async throws -> Object {
        let all = fields.merging(["task": .string(task)]) { $1 }
        let request = try requestJSON(settings, all)
        return try await answer(chat.completions.app, request, as: type)
    }
}

private func array(_ texts: [String]) -> JSONValue { .array(texts.map(JSONValue.string)) }
