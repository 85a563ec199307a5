// Sets optional members of JSON objects.

package import JSON

extension JSONObject {
  /// Sets a member, or omits it for nil.
  package mutating func set(_ name: String, _ value: String?) {
    if let value { self[name] = .string(value) }
  }

  /// Sets a member, or omits it for nil.
  package mutating func set(_ name: String, _ value: Bool?) {
    if let value { self[name] = .bool(value) }
  }

  /// Sets a member, or omits it for nil.
  package mutating func set(_ name: String, _ value: Int64?) {
    if let value { self[name] = .int(value) }
  }

  /// Sets a member as a decimal text, as proto3's JSON writes 64-bit integers; omits it for nil.
  package mutating func setDecimal(_ name: String, _ value: Int64?) {
    if let value { self[name] = .string(String(value)) }
  }

  /// Sets every member of another object.
  package mutating func merge(_ other: JSONObject) {
    for member in other.members { self[member.key] = member.value }
  }
}
