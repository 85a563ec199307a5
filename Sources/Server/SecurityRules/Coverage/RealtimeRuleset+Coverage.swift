// Reports the coverage of a ruleset of the Realtime Database. Each rule is a root of the report; its expressions are
// nested by their positions. A mark is the range of one expression in the text of the rules file.

import RealtimeModel

extension RealtimeRuleset {
  /// The coverage of the rules since they were released; nil if the file no longer compiles.
  package var coverage: CoverageReport? {
    guard let marked = inspection.markedRuleset() else { return nil }
    let text = RuleSourceText(file.text, columnsAreUTF16: true)
    let roots = marked.rulesInFileOrder.map { rule in
      let start = SourcePosition(line: rule.line, column: rule.column)
      let values = inspection.counts.values(ofRule: start)
      var nodes = rule.marks.sorted { marked.marks[$0].precedes(marked.marks[$1]) }[...]
      let children = marked.nodes(
        &nodes, inside: nil, text, inspection.counts, evaluations: values.total)
      let offset = text.offset(of: start)
      let end = children.map(\.endOffset).max() ?? offset
      // The outermost expression is the rule itself.
      let inner = children.count == 1 && children[0].offset == offset ? children[0].children : children
      return CoverageReport.Node(
        start: start, offset: offset, endOffset: end, values: values, skipped: 0, children: inner)
    }
    return CoverageReport(source: file.text, roots: roots)
  }

  /// Removes the marks that lie within `outer` from the start of the queue, and returns their expressions as a tree.
  private func nodes(
    _ queue: inout ArraySlice<Int>, inside outer: RealtimeMark?, _ text: RuleSourceText,
    _ counts: CoverageCounts<RealtimeOutcome>, evaluations: Int
  ) -> [CoverageReport.Node] {
    var nodes: [CoverageReport.Node] = []
    while let index = queue.first {
      let mark = marks[index]
      if let outer, mark.range.upperBound > outer.range.upperBound { break }
      queue.removeFirst()
      let children = self.nodes(&queue, inside: mark, text, counts, evaluations: evaluations)
      let values = counts.values(of: index)
      let offset = text.offset(of: mark.position)
      nodes.append(
        CoverageReport.Node(
          start: mark.position, offset: offset, endOffset: max(offset, text.offset(of: mark.end) - 1),
          values: values, skipped: max(0, evaluations - values.total), children: children))
    }
    return nodes
  }
}
