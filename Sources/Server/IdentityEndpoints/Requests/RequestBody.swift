// A request body whose members have the types of its operation.

package import Identity
package import JSON
package import NIOCore

/// The converted body of a request.
package struct RequestBody: Sendable {
  /// The members, converted to the types of the operation.
  package private(set) var object: JSONObject

  /// Maximum levels of a body.
  private static let maximumDepth = 64

  init(_ object: JSONObject = [:]) { self.object = object }

  /// Parses and converts a JSON body. An empty body counts as an empty object.
  init(json bytes: ByteBuffer, _ fields: [String: FieldKind]) throws(IdentityError) {
    let value: JSONValue
    if bytes.readableBytes == 0 {
      value = .object([:])
    } else {
      let limits = JSONLimits(depth: Self.maximumDepth, bytes: bytes.readableBytes)
      do { value = try JSONValue(json: Array(bytes.readableBytesView), limits: limits) } catch {
        throw .invalidBody("\(error)", reason: "parseError")
      }
    }
    guard let object = value.object else { throw .invalidBody("The body must be an object") }
    self.object = try FieldKind.convert(object, fields)
  }

  /// Parses and converts a form-encoded body.
  init(form pairs: [(name: String, value: String)], _ fields: [String: FieldKind]) throws(IdentityError) {
    var object = JSONObject()
    for pair in pairs { object[pair.name] = .string(pair.value) }
    self.object = try FieldKind.convert(object, fields)
  }

  /// A body whose members already have their types.
  package init(converted object: JSONObject) { self.object = object }

  /// The body of a change of a project's settings; nil for none.
  package init(configuration bytes: ByteBuffer?) throws(IdentityError) {
    self =
      try bytes.map { bytes throws(IdentityError) in
        try RequestBody(json: bytes, RequestFields.configuration)
      } ?? RequestBody()
  }

  /// Whether the body has a member.
  package func has(_ name: String) -> Bool { object[name] != nil }

  /// The string of a member; nil if it is absent.
  package func string(_ name: String) -> String? { object[name]?.string }

  /// The string of a member; nil if it is absent or empty.
  package func text(_ name: String) -> String? {
    guard let text = object[name]?.string, !text.isEmpty else { return nil }
    return text
  }

  /// The boolean of a member; nil if it is absent.
  package func bool(_ name: String) -> Bool? { object[name]?.bool }

  /// The integer of a member; nil if it is absent or not an integer.
  package func int(_ name: String) -> Int64? {
    object[name]?.int ?? object[name]?.string.flatMap { Int64($0) }
  }

  /// The elements of a list; empty if it is absent.
  package func list(_ name: String) -> [JSONValue] { object[name]?.array ?? [] }

  /// The strings of a list; empty if it is absent.
  package func strings(_ name: String) -> [String] { list(name).compactMap(\.string) }

  /// The object of a member; nil if it is absent.
  package func object(_ name: String) -> JSONObject? { object[name]?.object }
}
