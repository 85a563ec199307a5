// Arrays as sets, for the array transforms: equality is the queries' (1 = 1.0), order stays the array's.
//
// Invariant: n log n, whatever the arrays hold, since they come from clients and run where others wait.

extension [Value] {
  /// This array, followed by each element that it does not hold yet; equal ones among `elements` once.
  func union(_ elements: [Value]) -> [Value] {
    let all = self + elements
    let order = all.indices.sorted { a, b in
      switch Value.compare(all[a], all[b]) {
      case .ascending: true
      case .descending: false
      case .same: a < b
      }
    }
    // The first of each run of equals stays; of the later ones only what stood here before.
    var stays = [Bool](repeating: true, count: all.count)
    for (previous, index) in zip(order, order.dropFirst())
    where index >= count && Value.compare(all[previous], all[index]) == .same {
      stays[index] = false
    }
    return all.indices.lazy.filter { stays[$0] }.map { all[$0] }
  }

  /// This array without what equals any of `elements`.
  func subtracting(_ elements: [Value]) -> [Value] {
    let sorted = elements.sorted { Value.compare($0, $1) == .ascending }
    return filter { candidate in
      var low = 0
      var high = sorted.count
      while low < high {
        let middle = (low + high) / 2
        switch Value.compare(sorted[middle], candidate) {
        case .same: return false
        case .ascending: low = middle + 1
        case .descending: high = middle
        }
      }
      return true
    }
  }
}
