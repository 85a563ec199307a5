// Stores the values of the placeholders of a conformance case (a list of requests with patterns of their responses), and
// expands the placeholders in requests.

import Crypto
import Foundation
import Identity
import JSON

/// The named values of one case.
struct CaseValues {
  private(set) var values: [String: JSONValue] = [:]

  struct Unknown: Error, CustomStringConvertible {
    var description: String
  }

  subscript(name: String) -> JSONValue? {
    get { values[name] }
    set { values[name] = newValue }
  }

  static var now: Int64 { Int64(Date().timeIntervalSince1970) }

  /// The value of a name, or of `now` with an offset.
  func value(_ name: String) throws -> JSONValue {
    if let value = values[name] { return value }
    if name == "now" { return .int(Self.now) }
    if name.hasPrefix("now"), let offset = Int64(name.dropFirst(3)) { return .int(Self.now + offset) }
    throw Unknown(description: "no value \(name)")
  }

  /// Replaces each `${NAME}` of a text.
  func expand(_ text: String) throws -> String {
    var (result, rest) = ("", text[...])
    while let start = rest.range(of: "${"), let end = rest[start.upperBound...].firstIndex(of: "}") {
      result += rest[..<start.lowerBound]
      let value = try value(String(rest[start.upperBound..<end]))
      result += value.string ?? String(decoding: value.json(), as: UTF8.self)
      rest = rest[rest.index(after: end)...]
    }
    return result + rest
  }

  /// The value of a text that is one placeholder; nil for other texts.
  func placeholder(_ text: String) throws -> JSONValue? {
    guard text.hasPrefix("$"), text.count > 1 else { return nil }
    if text.hasPrefix("${") {
      guard text.firstIndex(of: "}") == text.index(before: text.endIndex) else { return nil }
      return try value(String(text.dropFirst(2).dropLast()))
    }
    let name = text.dropFirst()
    guard name.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" }) else { return nil }
    return try value(String(name))
  }

  /// Replaces the placeholders of a request.
  mutating func expand(_ json: JSONValue) throws -> JSONValue {
    switch json {
    case .string(let text): return try placeholder(text) ?? .string(expand(text))
    case .array(let elements): return .array(try elements.map { try expand($0) })
    case .object(let object):
      if object.count == 1, let member = object.members.first, member.key.hasPrefix("$") {
        return try make(member.key, member.value)
      }
      var result = JSONObject()
      for member in object.members { result[member.key] = try expand(member.value) }
      return .object(result)
    default: return json
    }
  }

  private mutating func make(_ kind: String, _ argument: JSONValue) throws -> JSONValue {
    let value = try expand(argument)
    switch kind {
    case "$make_jwt":
      let header = value["header"]?.object ?? ["alg": .string("none"), "typ": .string("JWT")]
      return .string(JSONWebToken.encode(header, value["claims"]?.object ?? [:]) + ".")
    case "$edit_jwt":
      guard let token = value["token"]?.string.flatMap({ JSONWebToken($0) }) else {
        throw Unknown(description: "no token to edit")
      }
      var claims = token.claims
      for member in value["set"]?.object?.members ?? [] { claims[member.key] = member.value }
      for name in value["unset"]?.array ?? [] { claims[name.string ?? ""] = nil }
      return .string(JSONWebToken.unsigned(claims))
    case "$json_text": return .string(String(decoding: value.json(), as: UTF8.self))
    case "$form_text": return .string(Self.form(value.object ?? [:]))
    case "$base64_json": return .string(Data(value.json()).base64EncodedString())
    case "$totp":
      let secret = Self.base32(value["secret"]?.string ?? "")
      let step = (Self.now + (value["offset"]?.int ?? 0)) / TimeBasedCode.period
      let code = JSONValue.string(TimeBasedCode.code(secret: secret, step: step))
      if let name = value["keep"]?.string { values[name] = code }
      return code
    case "$range":
      let count = value["count"]?.int ?? 0
      return .array((0..<count).map { .string((value["prefix"]?.string ?? "") + String($0)) })
    case "$repeat":
      return .string(
        String(repeating: value["text"]?.string ?? "", count: Int(value["times"]?.int ?? 0)))
    default: throw Unknown(description: "unknown placeholder \(kind)")
    }
  }

  static func form(_ object: JSONObject) -> String {
    object.members.map { escape($0.key) + "=" + escape($0.value.string ?? "") }.joined(separator: "&")
  }

  static func escape(_ text: String) -> String {
    text.addingPercentEncoding(
      withAllowedCharacters: CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")) ?? ""
  }

  private static func base32(_ text: String) -> [UInt8] {
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")
    var (bytes, bits, count): ([UInt8], UInt32, Int) = ([], 0, 0)
    for character in text {
      guard let digit = digits.firstIndex(of: character) else { continue }
      bits = (bits << 5 | UInt32(digit)) & 0xFFFF
      count += 5
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(bits >> UInt32(count) & 255))
      }
    }
    return bytes
  }
}
