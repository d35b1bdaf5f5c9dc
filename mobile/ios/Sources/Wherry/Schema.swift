import Foundation

/// A type that gives its own JSON Schema, where `jsonSchema(of:)` cannot find it: an enum with values,
/// or a type whose initializer checks what it decodes.
public protocol Described: Decodable {
    static var jsonSchema: String { get }
}

/// Returns the JSON Schema of a type, as its `init(from:)` decodes it.
///
/// Optional properties may be missing, all others are required. Types have schemas that consist of
/// structs, arrays, optionals, dictionaries with `String` as keys, `String`, numbers, `Bool`, `Date`
/// (ISO 8601), `URL`, and enums that are `CaseIterable` with raw values.
///
/// - Throws: `WherryError.invalidArgument`: a part of the type has no schema.
public func jsonSchema<Value: Decodable>(of type: Value.Type) throws -> String {
    let writer = SchemaWriter()
    let (schema, _) = try writer.described(type)
    guard !writer.definitions.isEmpty else { return schema.text }
    let definitions = Schema.object(writer.definitions.map { ($0.name, $0.schema) })
    guard case .object(let fields) = schema else { return schema.text }
    return Schema.object(fields + [("$defs", definitions)]).text
}

/// Decodes an answer that was constrained to the schema of a type.
func decoded<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    do {
        return try decoder.decode(type, from: Data(text.utf8))
    } catch let error as DecodingError {
        throw WherryError.unreadableAnswer("The answer is no \(type): \(error)", text: text)
    }
}

func responseFormat<Value: Decodable>(of type: Value.Type) throws -> ResponseFormat {
    let name = "\(type)".filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
    return .jsonSchema(try jsonSchema(of: type), name: name.isEmpty ? "answer" : name)
}

/// JSON whose objects keep their order.
private indirect enum Schema {
    case object([(String, Schema)])
    case array([Schema])
    case literal(String)

    static func string(_ text: String) -> Schema {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        let data = try? encoder.encode(text)
        return .literal(data.map { String(decoding: $0, as: UTF8.self) } ?? "\"\"")
    }
    static func type(_ name: String) -> Schema { .object([("type", .string(name))]) }

    var text: String {
        switch self {
        case .object(let fields):
            let parts = fields.map { "\(Schema.string($0.0).text): \($0.1.text)" }
            return "{\(parts.joined(separator: ", "))}"
        case .array(let items): return "[\(items.map(\.text).joined(separator: ", "))]"
        case .literal(let text): return text
        }
    }
}

// What tells collections of decodable values from other types.
private protocol AnyList { static var element: any Decodable.Type { get } }
extension Array: AnyList where Element: Decodable {
    fileprivate static var element: any Decodable.Type { Element.self }
}
private protocol AnyOptional { static var wrapped: any Decodable.Type { get } }
extension Optional: AnyOptional where Wrapped: Decodable {
    fileprivate static var wrapped: any Decodable.Type { Wrapped.self }
}
private protocol AnyMap { static var value: any Decodable.Type { get } }
extension Dictionary: AnyMap where Key == String, Value: Decodable {
    fileprivate static var value: any Decodable.Type { Value.self }
}

/// Lets types decode themselves from a decoder that has any value they ask for, and records what
/// they ask.
private final class SchemaWriter {
    private(set) var definitions: [(name: String, schema: Schema)] = []
    private var open: [ObjectIdentifier] = []
    private var recursive: Set<ObjectIdentifier> = []

    /// Returns the schema of a type, and a value of it.
    func described<Value: Decodable>(_ type: Value.Type) throws -> (Schema, Value) {
        if let simple = leaf(type) { return (simple.0, try cast(simple.1)) }
        if let nested = try container(type) { return (nested.0, try cast(nested.1)) }
        if let own = type as? any Described.Type {
            return (.literal(own.jsonSchema), try value(type))
        }
        if let cases = try choices(type) { return cases }
        return try structure(type)
    }

    private func cast<Value>(_ value: Any) throws -> Value {
        guard let value = value as? Value else {
            throw WherryError.invalidArgument("\(Value.self) has no JSON Schema")
        }
        return value
    }

    private func leaf(_ type: Any.Type) -> (Schema, Any)? {
        switch type {
        case is Bool.Type: return (.type("boolean"), false)
        case is String.Type: return (.type("string"), "")
        case is Double.Type: return (.type("number"), Double(0))
        case is Float.Type: return (.type("number"), Float(0))
        case is Date.Type:
            let fields: [(String, Schema)] = [
                ("type", .string("string")), ("format", .string("date-time")),
            ]
            return (.object(fields), Date(timeIntervalSince1970: 0))
        case is URL.Type:
            let fields: [(String, Schema)] = [("type", .string("string")), ("format", .string("uri"))]
            return (.object(fields), URL(fileURLWithPath: "/"))
        default:
            guard let number = type as? any FixedWidthInteger.Type else { return nil }
            return (integer(number), number.zero)
        }
    }

    private func integer(_ type: any FixedWidthInteger.Type) -> Schema {
        var fields: [(String, Schema)] = [("type", .string("integer"))]
        if type.bitWidth < Int64.bitWidth {
            fields += [("minimum", .literal(type.lowest)), ("maximum", .literal(type.highest))]
        } else if !type.isSigned {
            fields.append(("minimum", .literal("0")))
        }
        return .object(fields)
    }

    /// Optionals, arrays and dictionaries; the value is empty where the type is inside of itself.
    private func container(_ type: Any.Type) throws -> (Schema, Any)? {
        if let optional = type as? any AnyOptional.Type {
            let inner = try schema(optional.wrapped)
            return (.object([("anyOf", .array([inner, .type("null")]))]), Optional<Any>.none as Any)
        }
        if let list = type as? any AnyList.Type {
            let items = try schema(list.element)
            return (.object([("type", .string("array")), ("items", items)]), [Any]())
        }
        if let map = type as? any AnyMap.Type {
            let values = try schema(map.value)
            let fields: [(String, Schema)] = [
                ("type", .string("object")), ("additionalProperties", values),
            ]
            return (.object(fields), [String: Any]())
        }
        return nil
    }

    private func schema(_ type: any Decodable.Type) throws -> Schema {
        try isOpen(type) ? reference(type) : describedSchema(type)
    }

    private func describedSchema<Value: Decodable>(_ type: Value.Type) throws -> Schema {
        try described(type).0
    }

    func isOpen(_ type: Any.Type) -> Bool { open.contains(ObjectIdentifier(type)) }

    func reference(_ type: Any.Type) -> Schema {
        recursive.insert(ObjectIdentifier(type))
        return .object([("$ref", .string("#/$defs/\(type)"))])
    }

    private func choices<Value: Decodable>(_ type: Value.Type) throws -> (Schema, Value)? {
        guard let cases = type as? any CaseIterable.Type else { return nil }
        let all = cases.every
        let raw = all.compactMap { ($0 as? any RawRepresentable)?.anyRaw }
        guard let first = all.first, raw.count == all.count else {
            throw WherryError.invalidArgument(
                "\(type) has no JSON Schema: its cases have no raw values; make it Described")
        }
        let literals = raw.map { value -> Schema in
            if let text = value as? String { return .string(text) }
            return .literal("\(value)")
        }
        return (.object([("enum", .array(literals))]), try cast(first))
    }

    private func structure<Value: Decodable>(_ type: Value.Type) throws -> (Schema, Value) {
        let id = ObjectIdentifier(type)
        open.append(id)
        defer { open.removeLast() }
        let recorder = Recorder(writer: self)
        let value: Value
        do {
            value = try Value(from: recorder)
        } catch let error as WherryError {
            throw error
        } catch {
            throw WherryError.invalidArgument(
                "\(type) has no JSON Schema, since it cannot decode empty values: \(error); "
                    + "make it Described")
        }
        let schema = recorder.schema
        guard recursive.contains(id) else { return (schema, value) }
        definitions.append(("\(type)", schema))
        return (reference(type), value)
    }

    /// A value of a type whose schema is known.
    private func value<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if let cases = (type as? any CaseIterable.Type)?.every, let first = cases.first {
            return try cast(first)
        }
        return try structure(type).1
    }
}

extension FixedWidthInteger {
    fileprivate static var lowest: String { "\(min)" }
    fileprivate static var highest: String { "\(max)" }
}
extension CaseIterable {
    fileprivate static var every: [Any] { Array(allCases) }
}
extension RawRepresentable {
    fileprivate var anyRaw: Any { rawValue }
}

/// A decoder that answers with empty values; `schema` is what it was asked for.
private final class Recorder: Decoder {
    let writer: SchemaWriter
    let codingPath: [any CodingKey] = []
    let userInfo: [CodingUserInfoKey: Any] = [:]
    var fields: [(String, Schema)] = []
    var required: [Schema] = []
    var optional: Set<String> = []
    private var single: Schema?

    init(writer: SchemaWriter) { self.writer = writer }

    var schema: Schema {
        single
            ?? .object([
                ("type", .string("object")), ("properties", .object(fields)),
                ("required", .array(required)), ("additionalProperties", .literal("false")),
            ])
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(Keyed(recorder: self))
    }
    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw WherryError.invalidArgument(
            "A type that decodes a list by itself has no JSON Schema; make it Described")
    }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { Single(recorder: self) }

    func add(_ name: String, _ schema: Schema, required isRequired: Bool) {
        guard !fields.contains(where: { $0.0 == name }) else { return }
        fields.append((name, schema))
        if isRequired { required.append(.string(name)) }
    }

    struct Single: SingleValueDecodingContainer {
        let recorder: Recorder
        let codingPath: [any CodingKey] = []

        func decodeNil() -> Bool { false }
        func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
            let (schema, value) = try recorder.writer.described(type)
            recorder.single = schema
            return value
        }
    }

    struct Keyed<Key: CodingKey>: KeyedDecodingContainerProtocol {
        let recorder: Recorder
        let codingPath: [any CodingKey] = []
        let allKeys: [Key] = []

        func contains(_ key: Key) -> Bool { true }
        // Foundation asks this before it decodes an optional text, number or Bool.
        func decodeNil(forKey key: Key) throws -> Bool {
            recorder.optional.insert(key.stringValue)
            return false
        }

        func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
            let (schema, value) = try recorder.writer.described(type)
            add(key, schema, required: !recorder.optional.contains(key.stringValue))
            return value
        }

        private func add(_ key: Key, _ schema: Schema, required: Bool) {
            let nullable = Schema.object([("anyOf", .array([schema, .type("null")]))])
            recorder.add(key.stringValue, required ? schema : nullable, required: required)
        }

        func decodeIfPresent<Value: Decodable>(
            _ type: Value.Type, forKey key: Key
        ) throws -> Value? {
            let writer = recorder.writer
            let schema = writer.isOpen(type) ? writer.reference(type) : try writer.described(type).0
            add(key, schema, required: false)
            return nil
        }

        func nestedContainer<Nested: CodingKey>(
            keyedBy type: Nested.Type, forKey key: Key
        ) throws -> KeyedDecodingContainer<Nested> {
            throw WherryError.invalidArgument(
                "A type that decodes nested objects by itself has no JSON Schema; make it Described")
        }
        func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
            try recorder.unkeyedContainer()
        }
        func superDecoder() throws -> any Decoder { recorder }
        func superDecoder(forKey key: Key) throws -> any Decoder { recorder }
    }
}
