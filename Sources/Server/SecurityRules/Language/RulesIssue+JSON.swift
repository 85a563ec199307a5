// The JSON form of compiler findings, which the emulator and the Firebase Rules API share.

package import JSON

extension RulesIssue {
  /// The finding with its position in a file.
  package func json(in file: String) -> JSONValue {
    var positionJSON: JSONObject = ["fileName": .string(file)]
    if let position {
      positionJSON["line"] = .int(Int64(position.line))
      positionJSON["column"] = .int(Int64(position.column))
    }
    return .object([
      "sourcePosition": .object(positionJSON), "description": .string(text),
      "severity": .string(severity.rawValue),
    ])
  }
}
