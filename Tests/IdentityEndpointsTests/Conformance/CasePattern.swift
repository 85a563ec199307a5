// Compares responses with the patterns of the conformance cases. A case is a list of requests with patterns of their
// responses.

import Foundation
import Identity
import JSON

/// A response that does not match its pattern.
struct CaseMismatch: Error, CustomStringConvertible {
  var description: String
}

extension CaseValues {
  /// Compares a value with a pattern, and stores the values that the pattern names.
  mutating func match(_ pattern: JSONValue, _ value: JSONValue?, at path: String) throws {
    switch pattern {
    case .string(let text) where text.hasPrefix("$"): try matchKeyword(text, value, at: path)
    case .string(let text): try requireEqual(.string(expand(text)), value, at: path)
    case .object(let object):
      if let first = object.members.first?.key, first.hasPrefix("$") {
        try matchSpecial(object, value, at: path)
      } else {
        guard let members = value?.object else { throw mismatch("an object", value, path) }
        for member in object.members {
          try match(member.value, members[member.key], at: "\(path)/\(member.key)")
        }
      }
    case .array(let elements):
      guard let list = value?.array, list.count == elements.count else {
        throw mismatch("a list of \(elements.count)", value, path)
      }
      for (index, element) in elements.enumerated() {
        try match(element, list[index], at: "\(path)/\(index)")
      }
    default: try requireEqual(pattern, value, at: path)
    }
  }

  private func requireEqual(_ expected: JSONValue, _ value: JSONValue?, at path: String) throws {
    guard value == expected else {
      throw mismatch(String(decoding: expected.json(), as: UTF8.self), value, path)
    }
  }

  private func mismatch(_ expected: String, _ value: JSONValue?, _ path: String) -> CaseMismatch {
    let actual = value.map { String(decoding: $0.json(), as: UTF8.self).prefix(600) } ?? "nothing"
    return CaseMismatch(description: "\(path): expected \(expected), got \(actual)")
  }

  private mutating func matchKeyword(_ text: String, _ value: JSONValue?, at path: String) throws {
    func require(_ condition: Bool) throws { if !condition { throw mismatch(text, value, path) } }
    switch text {
    case "$absent": try require(value == nil)
    case "$any": try require(value != nil)
    case "$string": try require(value?.string?.isEmpty == false)
    case "$number": try require(value?.double != nil)
    case "$bool": try require(value?.bool != nil)
    case "$object": try require(value?.object != nil)
    case "$list": try require(value?.array != nil)
    case "$empty": try require(value?.object?.isEmpty == true || value?.array?.isEmpty == true)
    case "$millis": try require(Self.isNear((value?.string).flatMap { Int64($0) }.map { $0 / 1000 }, 0))
    case "$seconds": try require(Self.isNear((value?.string).flatMap { Int64($0) }, 0))
    case "$epoch": try require(Self.isNear(value?.int, 0))
    case "$rfc3339":
      let formatter = ISO8601DateFormatter()
      formatter.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
      try require(value?.string.flatMap { formatter.date(from: $0) } != nil)
    default:
      if let offset = text.dropPrefix("$near:").flatMap({ Int64($0) }) {
        try require(Self.isNear(value?.int, offset))
      } else if let expression = text.dropPrefix("$re:") {
        let regex = try Regex(expression).dotMatchesNewlines()
        try require(value?.string.map { $0.wholeMatch(of: regex) != nil } == true)
      } else if let name = text.dropPrefix("$not:") {
        try require(value != nil && value != self[name])
      } else if let name = text.dropPrefix("$save:") {
        try require(value != nil)
        self[name] = value
      } else if let expected = try placeholder(text) {
        try requireEqual(expected, value, at: path)
      } else {
        try requireEqual(.string(expand(text)), value, at: path)
      }
    }
  }

  /// Seconds by which a time may differ from the expected one.
  private static let tolerance: Int64 = 20

  private static func isNear(_ seconds: Int64?, _ offset: Int64) -> Bool {
    seconds.map { abs($0 - now - offset) <= tolerance } ?? false
  }

  private mutating func matchSpecial(_ object: JSONObject, _ value: JSONValue?, at path: String) throws {
    if let exact = object["$exact"]?.object {
      guard let members = value?.object else { throw mismatch("an object", value, path) }
      for member in exact.members {
        try match(member.value, members[member.key], at: "\(path)/\(member.key)")
      }
      for member in members.members where exact[member.key] == nil {
        throw CaseMismatch(description: "\(path): unexpected member \(member.key)")
      }
    } else if let name = object["$save"]?.string {
      guard let value else { throw mismatch("a value", nil, path) }
      if let pattern = object["$is"] { try match(pattern, value, at: path) }
      self[name] = value
    } else if let claims = object["$jwt"] {
      try matchToken(object, claims, value, at: path)
    } else if let pattern = object["$json"] {
      guard let json = try? JSONValue(json: value?.string ?? "") else { throw mismatch("JSON", value, path) }
      try match(pattern, json, at: path + "(json)")
    } else if let pattern = object["$url"] {
      try matchURL(pattern, value, at: path)
    } else if let patterns = object["$contains"]?.array {
      guard let list = value?.array else { throw mismatch("a list", value, path) }
      for pattern in patterns {
        var fits = false
        for element in list {
          var trial = self
          if (try? trial.match(pattern, element, at: path)) != nil {
            self = trial
            fits = true
          }
        }
        guard fits else {
          throw mismatch("an element \(String(decoding: pattern.json(), as: UTF8.self))", value, path)
        }
      }
    } else if let pattern = object["$lacks"] {
      guard let list = value?.array else { throw mismatch("a list", value, path) }
      for element in list {
        var trial = self
        if (try? trial.match(pattern, element, at: path)) != nil {
          throw mismatch("no element \(String(decoding: pattern.json(), as: UTF8.self))", value, path)
        }
      }
    } else if let count = object["$length"]?.int {
      guard let list = value?.array, list.count == count else {
        throw mismatch("\(count) elements", value, path)
      }
    } else if let patterns = object["$any_of"]?.array {
      for pattern in patterns {
        var trial = self
        if (try? trial.match(pattern, value, at: path)) != nil {
          self = trial
          return
        }
      }
      throw mismatch(
        "one of \(String(decoding: JSONValue.array(patterns).json(), as: UTF8.self))", value, path)
    } else {
      throw CaseMismatch(description: "\(path): unknown pattern \(object.members.map(\.key))")
    }
  }

  private mutating func matchToken(
    _ object: JSONObject, _ claims: JSONValue, _ value: JSONValue?, at path: String
  ) throws {
    guard let text = value?.string, let token = JSONWebToken(text) else {
      throw mismatch("a JWT", value, path)
    }
    try match(claims, .object(token.claims), at: path + "(claims)")
    if object["$unsigned"]?.bool == true {
      guard token.header == ["alg": .string("none"), "typ": .string("JWT")], token.signature.isEmpty else {
        throw mismatch("an unsigned JWT", value, path)
      }
    }
    if let header = object["$header"] { try match(header, .object(token.header), at: path + "(header)") }
  }

  private mutating func matchURL(_ pattern: JSONValue, _ value: JSONValue?, at path: String) throws {
    guard let text = value?.string, let url = URLComponents(string: text) else {
      throw mismatch("a URL", value, path)
    }
    if let base = pattern["base"] {
      let actual = text.prefix { $0 != "?" && $0 != "#" }
      try match(base, .string(String(actual)), at: path + "(base)")
    }
    if let expected = pattern["path"] { try match(expected, .string(url.path), at: path + "(path)") }
    if let query = pattern["query"] {
      var object = JSONObject()
      for item in url.queryItems ?? [] { object[item.name] = .string(item.value ?? "") }
      try match(query, .object(object), at: path + "(query)")
    }
  }
}

extension String {
  /// The text after a prefix; nil if the text does not begin with it.
  fileprivate func dropPrefix(_ prefix: String) -> String? {
    hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
  }
}
