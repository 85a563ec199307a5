// Splits registered onDisconnect values along a path, when a location inside them is cancelled.
//
// Rows may be nested: a later operation has a row below the row of an earlier one, and is decided separately.
// The split preserves this: each part keeps the number of the operation that registered its value.

import RealtimeModel

/// The rows that remain after a cancel.
struct SplitRows {
  private(set) var rows: [DisconnectRow] = []

  /// - Parameters:
  ///   - registered: the rows at and below a location, ancestors before descendants.
  ///   - siblings: the locations next to the path that remain registered. The last one may be on the path, if the value
  ///     there is a leaf.
  ///   - path: the cancelled location.
  init(_ registered: [DisconnectRow], at siblings: [Path], along path: Path) {
    var onPath: [DisconnectRow] = []
    var siblingRows: [Path: [DisconnectRow]] = [:]
    for row in registered where !path.contains(row.path) {
      let shared = zip(row.path.keys, path.keys).prefix { $0 == $1 }.count
      if shared == row.path.count {
        onPath.append(row)
      } else {
        siblingRows[Path(keys: Array(row.path.keys.prefix(shared + 1))), default: []].append(row)
      }
    }
    for sibling in siblings {
      var parts = siblingRows[sibling] ?? []
      if sibling.contains(path) {
        parts = registered.filter { sibling.contains($0.path) && !path.contains($0.path) }
      }
      // If no operation has registered this location itself, its value is part of the next row above. An
      // empty value is kept even if only later operations have values here, because it replaces the complete
      // location.
      if parts.first?.path != sibling, let above = onPath.last(where: { $0.path.contains(sibling) }) {
        let relative = Path(keys: Array(sibling.keys.dropFirst(above.path.count)))
        rows.append(
          DisconnectRow(path: sibling, value: above.value.descendant(relative), operation: above.operation))
      }
      rows += parts
    }
  }
}
