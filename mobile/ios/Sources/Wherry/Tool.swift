import Foundation

/// A function that the model may call in a `ChatSession`.
///
/// ```swift
/// struct Weather: Tool {
///     struct Arguments: Decodable { let city: String }
///     let name = "weather"
///     let description = "The weather of a city"
///     let parameters: JSONValue? = [
///         "type": "object", "properties": ["city": ["type": "string"]], "required": ["city"],
///     ]
///     func call(_ arguments: Arguments) async throws -> String { try await forecast(arguments.city) }
/// }
/// ```
public protocol Tool: Sendable {
    associatedtype Arguments: Decodable
    var name: String { get }
    var description: String { get }
    /// JSON Schema of the arguments; nil: the function has none.
    var parameters: JSONValue? { get }
    /// Whether the arguments are constrained to the schema, which needs a package with `--grammar`.
    var strict: Bool { get }

    /// Returns the result for the model; an error is told to the model, which may try again.
    func call(_ arguments: Arguments) async throws -> String
}

extension Tool {
    public var strict: Bool { false }

    /// The tool as OpenAI's object.
    var json: JSONValue {
        var function: [String: JSONValue] = [
            "name": .string(name), "description": .string(description),
        ]
        if let parameters { function["parameters"] = parameters }
        if strict { function["strict"] = true }
        return ["type": "function", "function": .object(function)]
    }

    /// Calls the function with arguments as the model wrote them; returns its result or failure.
    func called(_ arguments: String) async throws -> String {
        do {
            let text = arguments.isEmpty ? "{}" : arguments
            return try await call(JSONDecoder().decode(Arguments.self, from: Data(text.utf8)))
        } catch let error as CancellationError {
            throw error
        } catch {
            return "Error: \((error as? LocalizedError)?.errorDescription ?? "\(error)")"
        }
    }
}
