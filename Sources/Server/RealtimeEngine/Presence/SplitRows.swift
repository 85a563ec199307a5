// Splits registered onDisconnect values along a path, when a location inside them is cancelled.
//
// Rows may be nested: a later operation may have a row below that of an earlier one. The access policy decides about each
// operation separately. So each part keeps the number of the operation that registered its value.

import RealtimeModel

/// The rows that remain after a cancel.
struct SplitRows {
  private(set) var rows: [DisconnectRow] = []

  /// - Parameters:
  ///   - registered: the rows at and below a location, ancestors before descendants.
  ///   - siblings: the locations next to the path that remain registered. If the value at an ancestor of the path is a
  ///     leaf, that ancestor is the last of these locations.
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
      // If no operation has registered this location itself, a part of the next row above becomes its row. The row is
      // added even if this part is empty: at the end of the session it deletes the location, before the values of later
      // operations below it are set.
      if parts.first?.path != sibling, let above = onPath.last(where: { $0.path.contains(sibling) }) {
        let relative = Path(keys: Array(sibling.keys.dropFirst(above.path.count)))
        rows.append(
          DisconnectRow(path: sibling, value: above.value.descendant(relative), operation: above.operation))
      }
      rows += parts
    }
  }
}
