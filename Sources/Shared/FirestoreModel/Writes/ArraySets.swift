// Set operations on arrays, for the array transforms. Equality is query equality (1 = 1.0); the array keeps its order.
//
// Invariant: the cost is one binary search in the sorted operand for each element of this array. The bound matters
// because clients choose both sizes, and other writes wait during the operation. Typically the array is long and the
// operand short.

extension [Value] {
  /// This array, followed by each of `elements` that it does not contain. Equal elements are appended once.
  func union(_ elements: [Value]) -> [Value] {
    let sorted = elements.sortedForSearch()
    // Only the first of several equal elements counts as missing, unless this array contains it.
    var isMissing = [Bool](repeating: false, count: elements.count)
    for index in sorted { isMissing[index] = true }
    for value in self {
      if let index = elements.find(value, in: sorted) { isMissing[index] = false }
    }
    return self + elements.indices.lazy.filter { isMissing[$0] }.map { elements[$0] }
  }

  /// This array without the elements that equal any of `elements`.
  func subtracting(_ elements: [Value]) -> [Value] {
    let sorted = elements.sortedForSearch()
    return filter { elements.find($0, in: sorted) == nil }
  }

  /// The indices of the elements in sorted order. Of equal elements only the first is included.
  private func sortedForSearch() -> [Int] {
    let order = indices.sorted { a, b in
      switch Value.compare(self[a], self[b]) {
      case .ascending: true
      case .descending: false
      case .same: a < b
      }
    }
    var distinct: [Int] = []
    for index in order {
      if let last = distinct.last, Value.compare(self[last], self[index]) == .same { continue }
      distinct.append(index)
    }
    return distinct
  }

  /// The index of an element equal to `value`, among the indices in `sorted`.
  private func find(_ value: Value, in sorted: [Int]) -> Int? {
    var low = 0
    var high = sorted.count
    while low < high {
      let middle = (low + high) / 2
      switch Value.compare(self[sorted[middle]], value) {
      case .same: return sorted[middle]
      case .ascending: low = middle + 1
      case .descending: high = middle
      }
    }
    return nil
  }
}
