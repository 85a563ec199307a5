// Writes a coverage report as an HTML page. The page has no script, and escapes the text of the rules file and of
// values.

import JSON

/// Writes the page of a coverage report.
struct CoveragePage {
  private let source: [Unicode.Scalar]
  /// The opening tags before the character at an offset, each with the offset of its expression's last character.
  private var opening: [Int: [(end: Int, tag: String)]] = [:]
  /// The number of closing tags after the character at an offset.
  private var closing: [Int: Int] = [:]

  init(_ source: String) { self.source = Array(source.unicodeScalars) }

  /// Adds an expression and the expressions inside it.
  mutating func add(_ node: CoverageReport.Node) {
    let values = node.values
    let state = values.total == 0 ? "never" : "seen"
    var title = "evaluated \(values.total) times"
    for (value, count) in values.distinct { title += "\n\(count) × \(Self.summary(value))" }
    if values.others > 0 { title += "\n\(values.others) × other values" }
    if node.skipped > 0 { title += "\n\(node.skipped) × skipped" }
    let tag = "<span class=\"\(state)\" title=\"\(Self.escaped(title))\">"
    opening[node.offset, default: []].append((node.endOffset, tag))
    closing[node.endOffset, default: 0] += 1
    for child in node.children { add(child) }
  }

  /// The page as HTML.
  func html(title: String) -> String {
    var text = ""
    for (offset, scalar) in source.enumerated() {
      // The outermost expression opens first.
      let tags = (opening[offset] ?? []).enumerated().sorted {
        ($1.element.end, $0.offset) < ($0.element.end, $1.offset)
      }
      for tag in tags { text += tag.element.tag }
      text += Self.escaped(String(scalar))
      for _ in 0..<(closing[offset] ?? 0) { text += "</span>" }
    }
    return """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <title>\(Self.escaped(title))</title>
      <style>
      body { font-family: sans-serif; }
      pre { line-height: 1.6; }
      .seen { background: #d7f0d7; }
      .never { background: #f6d0d0; }
      span:hover { outline: 1px solid #555; }
      </style>
      </head>
      <body>
      <h1>\(Self.escaped(title))</h1>
      <p>Expressions that were never evaluated are red. Point at an expression to see its values.</p>
      <pre>\(text)</pre>
      </body>
      </html>

      """
  }

  private static func summary(_ value: JSONValue) -> String {
    String(String(decoding: value.json(), as: UTF8.self).prefix(200))
  }

  private static func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      case "\"": result += "&quot;"
      case "'": result += "&#39;"
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
