// Arrays as sets, for the array transforms: equality is the queries' (1 = 1.0), order stays the array's.
//
// Invariant: one pass over this array and a search of the other's sorted elements for each of its own, whatever they
// hold: they come from clients and run where others wait, and few elements change a long array.

extension [Value] {
  /// This array, followed by each element that it does not hold yet; equal ones among `elements` once.
  func union(_ elements: [Value]) -> [Value] {
    let sorted = elements.sortedForSearch()
    // Of equal ones the first is missing, unless this array has one.
    var isMissing = [Bool](repeating: false, count: elements.count)
    for index in sorted { isMissing[index] = true }
    for value in self {
      if let index = elements.find(value, in: sorted) { isMissing[index] = false }
    }
    return self + elements.indices.lazy.filter { isMissing[$0] }.map { elements[$0] }
  }

  /// This array without what equals any of `elements`.
  func subtracting(_ elements: [Value]) -> [Value] {
    let sorted = elements.sortedForSearch()
    return filter { elements.find($0, in: sorted) == nil }
  }

  /// The places of the elements in their order, of equal ones the first alone.
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

  /// Where an element equal to a value stands, among those in `sorted`.
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
