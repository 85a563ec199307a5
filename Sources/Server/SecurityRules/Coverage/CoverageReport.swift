// The coverage report lists the expressions of a rules file with the values that they had, as a tree. Its JSON form is
// the same as in Google's emulator.

package import JSON

/// The coverage of one rules file.
package struct CoverageReport: Sendable {
  /// An expression and the expressions in it.
  struct Node: Sendable {
    /// The position of the first character.
    var start: SourcePosition
    /// The offset of the first character in the file, in characters.
    var offset: Int
    /// The offset of the last character, which is included.
    var endOffset: Int
    /// The values; none for an expression that was never evaluated.
    var values: CoveredValues
    /// The number of times that the enclosing function body or condition was evaluated without this expression.
    var skipped: Int
    var children: [Node]
  }

  /// The text of the rules file.
  let source: String
  /// The function bodies and conditions, in the order of a walk over the file.
  let roots: [Node]

  /// The list of expressions in the form of Google's emulator. A value `{}` counts the evaluations that skipped the
  /// expression because another operand determined the result. An element without a value counts the occurrences of all
  /// values that the list omits.
  package var json: JSONValue { .array(roots.map(Self.json)) }

  private static func json(_ node: Node) -> JSONValue {
    var object: JSONObject = [
      "sourcePosition": .object([
        "line": .int(Int64(node.start.line)), "column": .int(Int64(node.start.column)),
        "currentOffset": .int(Int64(node.offset)), "endOffset": .int(Int64(node.endOffset)),
      ])
    ]
    var values = node.values.distinct.map { value, count in
      JSONValue.object(["value": value, "count": .int(Int64(count))])
    }
    if node.skipped > 0 {
      values.append(.object(["value": .object([:]), "count": .int(Int64(node.skipped))]))
    }
    if node.values.others > 0 { values.append(.object(["count": .int(Int64(node.values.others))])) }
    if !values.isEmpty { object["values"] = .array(values) }
    if !node.children.isEmpty { object["children"] = .array(node.children.map(Self.json)) }
    return .object(object)
  }

  /// The report for tools that read the format of lcov. A line has the highest evaluation count of the roots that begin
  /// on it. A branch is the result true or false of a root.
  /// - Parameter file: the name of the rules file.
  package func lcov(file: String) -> String {
    var lines: [Int: Int] = [:]
    var branches: [String] = []
    var hits = 0
    for (index, root) in roots.enumerated() {
      lines[root.start.line] = max(lines[root.start.line] ?? 0, root.values.total)
      for (branch, wanted) in [JSONValue.bool(true), .bool(false)].enumerated() {
        let count = root.values.distinct.first { $0.value["boolValue"] == wanted }?.count ?? 0
        if count > 0 { hits += 1 }
        let taken = root.values.total == 0 ? "-" : String(count)
        branches.append("BRDA:\(root.start.line),\(index),\(branch),\(taken)")
      }
    }
    let name = file.filter { !$0.isNewline }
    var text = ["TN:", "SF:\(name)"] + branches
    text += ["BRF:\(branches.count)", "BRH:\(hits)"]
    text += lines.sorted { $0.key < $1.key }.map { "DA:\($0.key),\($0.value)" }
    text += ["LF:\(lines.count)", "LH:\(lines.values.count { $0 > 0 })", "end_of_record"]
    return text.joined(separator: "\n") + "\n"
  }

  /// The report as a page: the file with its expressions, each with its values as a tooltip.
  package func html(title: String) -> String {
    var page = CoveragePage(source)
    for root in roots { page.add(root) }
    return page.html(title: title)
  }
}
