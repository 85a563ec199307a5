// The JSON form of compiler findings, which the emulator and the Firebase Rules API share.

package import JSON

extension RulesIssue {
  /// The finding with its position in a file.
  package func json(in file: String) -> JSONValue {
    var place: JSONObject = ["fileName": .string(file)]
    if let position {
      place["line"] = .int(Int64(position.line))
      place["column"] = .int(Int64(position.column))
    }
    return .object([
      "sourcePosition": .object(place), "description": .string(text), "severity": .string(severity.rawValue),
    ])
  }
}
