// Computes the simple hash of a node. A client and the server compare their hashes to find out whether they have the
// same value, without sending it. The hashed text contains a leaf's type and value, or an object's children in default
// order with their hashes.

import JSON

extension Node {
  /// The simple hash, base64 of a SHA-1; the empty string for the empty node.
  ///
  /// Nodes above ``HashCell/minimumSize`` cache their hash. After a change only the nodes on the changed path are
  /// hashed again.
  public var hash: String {
    switch storage {
    case .empty: return ""
    case .leaf, .prioritizedLeaf: return computeHash(keyOrder: false)
    case .object(let object):
      guard let cell = object.hashCell else { return computeHash(keyOrder: false) }
      return cell.value { computeHash(keyOrder: false) }
    }
  }

  /// Whether a peer's simple hash matches this value, by the standard rule or by that of Firebase's iOS client.
  ///
  /// The iOS client lists the children of an object in key order if every child has a priority.
  public func matches(hash candidate: String) -> Bool {
    if TextOrder.equal(hash, candidate) { return true }
    return containsFullyPrioritizedObject && TextOrder.equal(keyOrderedHash, candidate)
  }

  /// Compares like ``matches(hash:)``, but hashes at most about `bytes` bytes. Returns nil if the comparison would have
  /// to hash more.
  public func matches(hash candidate: String, hashingAtMost bytes: Int) -> Bool? {
    guard unhashedBytes(atMost: bytes) <= bytes else { return nil }
    if TextOrder.equal(hash, candidate) { return true }
    guard containsFullyPrioritizedObject else { return false }
    // The iOS client's variant of the hash is not cached.
    return estimatedSize <= bytes ? TextOrder.equal(keyOrderedHash, candidate) : nil
  }

  /// The approximate number of bytes that computing the hash would read, without cached parts. Counting stops beyond
  /// `maximum`.
  func unhashedBytes(atMost maximum: Int) -> Int {
    guard case .object(let object) = storage, let cell = object.hashCell else { return estimatedSize }
    if cell.isComputed { return 0 }
    var bytes = 0
    object.children.forEach { key, child in
      // Adds the key and the child's hash, with two colons.
      bytes += key.text.utf8.count + 30 + child.unhashedBytes(atMost: maximum - bytes)
      return bytes <= maximum
    }
    return bytes
  }

  /// The hash in the variant of Firebase's iOS client.
  var keyOrderedHash: String { computeHash(keyOrder: true) }

  /// Whether the two variants of the hash can differ. O(1).
  var containsFullyPrioritizedObject: Bool {
    guard case .object(let object) = storage else { return false }
    return object.fullyPrioritizedCount > 0 || object.prioritizedCount == object.children.count
  }

  private func computeHash(keyOrder: Bool) -> String {
    var text = HashText()
    switch storage {
    case .empty: return ""
    case .leaf(let value): text.append(value)
    case .prioritizedLeaf(let leaf):
      text.append(leaf.priority)
      text.append(leaf.value)
    case .object(let object):
      if let priority = object.priority { text.append(priority) }
      let append = { (key: ChildKey, child: Node) -> Bool in
        text.append(":")
        text.append(key.text)
        text.append(":")
        text.append(keyOrder && child.containsFullyPrioritizedObject ? child.keyOrderedHash : child.hash)
        return true
      }
      if object.prioritizedCount == 0 || (keyOrder && object.prioritizedCount == object.children.count) {
        forEachChild(append)
      } else {
        for entry in sortedChildren(by: .priority) { _ = append(entry.key, entry.node) }
      }
    }
    return text.digest
  }
}

/// Builds the text of which a hash is computed.
struct HashText {
  private(set) var bytes: [UInt8] = []

  mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

  /// `priority:` and the typed value.
  mutating func append(_ priority: Priority) {
    append("priority:")
    append(priority.leafValue)
    append(":")
  }

  /// The type's name and the value. Strings are raw or quoted.
  mutating func append(_ value: LeafValue, quoted: Bool = false) {
    switch value {
    case .bool(let value): append(value ? "boolean:true" : "boolean:false")
    case .int(let number): append(Double(number))
    case .double(let number): append(number)
    case .string(let text):
      append("string:")
      if quoted { appendQuoted(text) } else { append(text) }
    case .deferred: append("deferred:")
    }
  }

  /// A string in quotes, with quotes and backslashes escaped.
  mutating func appendQuoted(_ text: String) {
    bytes.append(UInt8(ascii: "\""))
    for byte in text.utf8 {
      if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
      bytes.append(byte)
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// `number:` and the 16 hexadecimal digits of the double.
  private mutating func append(_ number: Double) {
    append("number:")
    let bits = number.bitPattern
    for shift in stride(from: 60, through: 0, by: -4) {
      let digit = UInt8(truncatingIfNeeded: bits >> UInt64(shift)) & 0xF
      bytes.append(digit < 10 ? 48 + digit : 87 + digit)
    }
  }

  /// Base64 of the SHA-1 of the text; the empty string for the empty text.
  var digest: String {
    guard !bytes.isEmpty else { return "" }
    return Base64.encode(bytes.withUnsafeBytes { SHA1.digest(of: $0) })
  }
}
