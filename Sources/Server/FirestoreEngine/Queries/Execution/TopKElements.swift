// The first few of many elements in an order, found by looking at each once.
//
// Invariant: never more than the wanted number are held. Once there are as many they are a heap with the last of them on
// top: one that comes no earlier costs one comparison, any other a logarithm of them, in whatever order they come.

/// Collects the first elements.
struct TopKElements<Element: Sendable>: Sendable {
  private let maximumCount: Int
  private let isBefore: @Sendable (Element, Element) -> Bool
  private var elements: [Element] = []
  private var isHeap = false

  /// - Parameter wanted: how many are of use, at least one.
  init(_ maximumCount: Int, by isBefore: @escaping @Sendable (Element, Element) -> Bool) {
    self.maximumCount = max(maximumCount, 1)
    self.isBefore = isBefore
  }

  var isEmpty: Bool { elements.isEmpty }
  var count: Int { elements.count }

  /// Adds an element. Returns the one that is not among the first any more: it, or another.
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

  /// Hands over what was collected, in order.
  mutating func take() -> [Element] {
    defer {
      elements = []
      isHeap = false
    }
    return elements.sorted(by: isBefore)
  }

  /// Moves an element down to below all that come after it.
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
