// A pending queue: values in the order of their identifiers. Most values are removed in the order in which
// they were added.
//
// An array would shift all values for each removal at its front. Here a removal empties a slot, and empty slots are
// compacted when they outnumber the values. Appending and removing cost O(log n) on average.
//
// Invariants
//   1. Identifiers ascend.
//   2. The first and the last slot in use hold a value.

/// Values by ascending identifiers.
struct PendingQueue<Value> {
  private var slots: [(id: Int, value: Value?)] = []
  /// The position of the first slot in use.
  private var head = 0
  /// The number of values.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// The smallest identifier; nil if the queue is empty.
  var firstID: Int? { isEmpty ? nil : slots[head].id }

  /// The largest identifier; nil if the queue is empty.
  var lastID: Int? { isEmpty ? nil : slots.last?.id }

  /// Adds a value at the end. If the last value has the same identifier, it is replaced.
  mutating func append(_ id: Int, _ value: Value) {
    if let last = lastID {
      precondition(last <= id, "invariant: the identifiers of a queue ascend")
      if last == id {
        slots[slots.count - 1].value = value
        return
      }
    }
    slots.append((id, value))
    count += 1
  }

  /// Removes the value with an identifier and returns it; nil if there is none.
  mutating func remove(_ id: Int) -> Value? {
    guard let position = position(of: id), let value = slots[position].value else { return nil }
    slots[position].value = nil
    count -= 1
    trim()
    return value
  }

  /// Removes every value and returns them in order.
  mutating func removeAll() -> [Value] {
    let all = values
    self = PendingQueue()
    return all
  }

  /// The value with an identifier.
  subscript(id: Int) -> Value? { position(of: id).flatMap { slots[$0].value } }

  /// The values in order.
  var values: [Value] { slots[head...].compactMap(\.value) }

  /// Visits the values in order.
  func forEach(_ visit: (Int, Value) -> Void) {
    for slot in slots[head...] {
      if let value = slot.value { visit(slot.id, value) }
    }
  }

  /// Whether every value satisfies a condition. The search ends at the first value that does not.
  func allSatisfy(_ condition: (Value) -> Bool) -> Bool {
    slots[head...].allSatisfy { $0.value.map(condition) ?? true }
  }

  /// Visits the identifiers in descending order until `visit` returns false.
  func forEachIDReversed(_ visit: (Int) -> Bool) {
    for slot in slots[head...].reversed() where slot.value != nil {
      if !visit(slot.id) { return }
    }
  }

  /// Changes every value in order. Values for which `change` returns nil are removed.
  mutating func update(_ change: (Value) -> Value?) {
    var kept: [(id: Int, value: Value?)] = []
    for slot in slots[head...] {
      if let value = slot.value, let changed = change(value) { kept.append((slot.id, changed)) }
    }
    slots = kept
    head = 0
    count = slots.count
  }

  private func position(of id: Int) -> Int? {
    var low = head
    var high = slots.count
    while low < high {
      let middle = (low + high) / 2
      if slots[middle].id < id { low = middle + 1 } else { high = middle }
    }
    return low < slots.count && slots[low].id == id ? low : nil
  }

  private mutating func trim() {
    while head < slots.count, slots[head].value == nil { head += 1 }
    while slots.count > head, slots[slots.count - 1].value == nil { slots.removeLast() }
    guard slots.count > 2 * count + 16 else { return }
    slots = slots[head...].filter { $0.value != nil }
    head = 0
  }
}
