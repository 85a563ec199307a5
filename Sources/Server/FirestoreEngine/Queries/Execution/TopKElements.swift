// Selects the first k of many elements in an order, in one pass.
//
// Invariant: at most k elements are held. When k elements are held and another is added, they form a heap
// with the last element in the order on top. A further element takes one comparison if it comes after all
// held elements, and O(log k) comparisons otherwise.

/// Collects the first k elements.
struct TopKElements<Element: Sendable>: Sendable {
  private let maximumCount: Int
  private let isBefore: @Sendable (Element, Element) -> Bool
  private var elements: [Element] = []
  private var isHeap = false

  /// - Parameter maximumCount: k, at least 1.
  init(_ maximumCount: Int, by isBefore: @escaping @Sendable (Element, Element) -> Bool) {
    self.maximumCount = max(maximumCount, 1)
    self.isBefore = isBefore
  }

  var isEmpty: Bool { elements.isEmpty }
  var count: Int { elements.count }

  /// Adds an element. Returns the element that is dropped because it is not among the first k: the added
  /// element or an earlier one. Returns nil if none is dropped.
  mutating func add(_ element: Element) -> Element? {
    guard elements.count >= maximumCount else {
      elements.append(element)
      return nil
    }
    if !isHeap {
      for index in (0..<elements.count / 2).reversed() { sink(from: index) }
      isHeap = true
    }
    guard let last = elements.first, isBefore(element, last) else { return element }
    elements[0] = element
    sink(from: 0)
    return last
  }

  /// Returns and removes the collected elements, sorted.
  mutating func takeSorted() -> [Element] {
    defer {
      elements = []
      isHeap = false
    }
    return elements.sorted(by: isBefore)
  }

  /// Moves an element down the heap until it precedes its children in heap order.
  private mutating func sink(from start: Int) {
    var index = start
    while true {
      var last = index
      for child in [2 * index + 1, 2 * index + 2]
      where child < elements.count && isBefore(elements[last], elements[child]) { last = child }
      if last == index { return }
      elements.swapAt(index, last)
      index = last
    }
  }
}
