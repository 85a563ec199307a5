// Builds the text that is hashed for a range of a compound hash. The text nests the keys of the range's leaves in
// parentheses, as if the value had no other leaves.

/// Builds the texts of consecutive ranges while visiting a value's leaves in order.
struct RangeText {
  private var text = HashText()
  private(set) var isOpen = false
  private var needsComma = false
  private(set) var path = Path.root
  /// The path of the last leaf added.
  private(set) var lastLeaf = Path.root

  /// The length of the current range's text so far, in bytes.
  var count: Int { text.bytes.count }

  mutating func beginChild(_ key: ChildKey) {
    open()
    if needsComma { text.append(",") }
    text.appendQuoted(key.text)
    text.append(":(")
    path.keys.append(key)
    needsComma = false
  }

  mutating func endChild() {
    path.keys.removeLast()
    if isOpen { text.append(")") }
    needsComma = true
  }

  mutating func addLeaf(_ leaf: Node) {
    guard let value = leaf.leafValue else { return }
    open()
    lastLeaf = path
    if let priority = leaf.priority {
      text.append("priority:")
      text.append(priority.leafValue, quoted: true)
      text.append(":")
    }
    text.append(value, quoted: true)
    needsComma = true
  }

  /// Ends the range.
  ///
  /// - Returns: the hash of the range.
  mutating func endRange() -> String {
    text.append(String(repeating: ")", count: path.count + 1))
    defer { discard() }
    return text.digest
  }

  /// Discards the text of the current range.
  mutating func discard() {
    text = HashText()
    isOpen = false
  }

  private mutating func open() {
    guard !isOpen else { return }
    isOpen = true
    text.append("(")
    for key in path.keys {
      text.appendQuoted(key.text)
      text.append(":(")
    }
    needsComma = false
  }
}

extension Node {
  /// Visits the leaves in order of their paths. `visit` runs after each leaf; the visit ends if it returns false.
  ///
  /// An object's priority is visited as a child named `.priority`, in key order. Firebase's mobile clients omit it if no
  /// key sorts after it. Then one of their ranges differs although nothing changed, and the server sends an unnecessary
  /// merge. If the server also omitted the priority, changes of it would not be found.
  ///
  /// - Parameter willAdd: runs before a leaf is added, when its path is known.
  @discardableResult
  func walkRanges(
    _ rangeText: inout RangeText, willAdd: (inout RangeText) -> Void = { _ in },
    _ visit: (inout RangeText) -> Bool
  ) -> Bool {
    switch content {
    case .empty: return true
    case .leaf:
      willAdd(&rangeText)
      rangeText.addLeaf(self)
      return visit(&rangeText)
    case .children:
      func visitChild(_ key: ChildKey, _ child: Node) -> Bool {
        rangeText.beginChild(key)
        guard child.walkRanges(&rangeText, willAdd: willAdd, visit) else { return false }
        rangeText.endChild()
        return true
      }
      var pending = priority.map { Node.leaf($0.leafValue) }
      let isFinished = forEachChild { key, child in
        if let priority = pending, ChildKey.priority < key {
          pending = nil
          guard visitChild(.priority, priority) else { return false }
        }
        return visitChild(key, child)
      }
      guard isFinished, let priority = pending else { return isFinished }
      return visitChild(.priority, priority)
    }
  }
}
