// The merge order: the order in which the changes of one merge apply.
//
// A merge is atomic, but its changes apply one by one. A location that is temporarily empty loses its
// priority. The order is therefore values, removals, priorities.

import RealtimeModel

extension Array {
  /// The changes of a merge in the order in which they apply.
  func inMergeOrder() -> [(Path, Node)] where Element == (Path, Node) {
    let (priorities, others) = (filter { $0.0.isPriority }, filter { !$0.0.isPriority })
    return others.filter { !$0.1.isEmpty } + others.filter { $0.1.isEmpty } + priorities
  }
}

extension PathTree where Value == Node {
  /// The values in merge order.
  var inMergeOrder: [(Path, Node)] {
    var changes: [(Path, Node)] = []
    forEach { changes.append(($0, $1)) }
    return changes.inMergeOrder()
  }
}
