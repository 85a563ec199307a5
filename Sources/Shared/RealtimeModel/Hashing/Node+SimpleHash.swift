// The simple hash: how a client and the server find out that they hold the same value without sending it. The text that
// is hashed names types and lists children in default order with their own hashes.

import Crypto

extension Node {
  /// The simple hash, base64 of a SHA-1; the empty string for the empty node.
  ///
  /// Kept on nodes above some hundred bytes, so that after a change only the way to it is hashed again.
  public var hash: String {
    switch storage {
    case .empty: return ""
    case .leaf, .prioritizedLeaf: return computeHash(keyOrder: false)
    case .object(let object):
      guard let cell = object.hashCell else { return computeHash(keyOrder: false) }
      return cell.value { computeHash(keyOrder: false) }
    }
  }

  /// Whether a peer's simple hash stands for this value: by the rule, or as the product's iOS client computes it.
  ///
  /// That client lists the children of an object in key order when every child has a priority.
  public func matches(hash candidate: String) -> Bool {
    if TextOrder.equal(hash, candidate) { return true }
    return containsFullyPrioritizedObject && TextOrder.equal(keyOrderedHash, candidate)
  }

  /// The same, as far as that is found out by hashing no more than about so many bytes; nil if it takes more.
  public func matches(hash candidate: String, hashingAtMost bytes: Int) -> Bool? {
    guard unhashedBytes(atMost: bytes) <= bytes else { return nil }
    if TextOrder.equal(hash, candidate) { return true }
    guard containsFullyPrioritizedObject else { return false }
    // The variant is kept nowhere.
    return estimatedSize <= bytes ? TextOrder.equal(keyOrderedHash, candidate) : nil
  }

  /// About how many bytes are still to be hashed for the hash; counted until there are more than so many.
  func unhashedBytes(atMost most: Int) -> Int {
    guard case .object(let object) = storage, let cell = object.hashCell else { return estimatedSize }
    if cell.isKnown { return 0 }
    var bytes = 0
    object.children.forEach { key, child in
      // The key and the child's hash, with colons.
      bytes += key.text.utf8.count + 30 + child.unhashedBytes(atMost: most - bytes)
      return bytes <= most
    }
    return bytes
  }

  /// The hash in the variant of the product's iOS client.
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

/// The text a hash is computed over.
struct HashText {
  private(set) var bytes: [UInt8] = []

  mutating func append(_ text: String) { bytes.append(contentsOf: text.utf8) }

  /// `priority:` and the typed value.
  mutating func append(_ priority: Priority) {
    append("priority:")
    append(priority.leafValue)
    append(":")
  }

  /// The type's name and the value; texts stand as they are, or quoted.
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

  /// A text in quotes, with backslashes before quotes and backslashes.
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
    var hasher = Insecure.SHA1()
    bytes.withUnsafeBytes { hasher.update(bufferPointer: $0) }
    return Base64.encode(hasher.finalize())
  }
}

/// Standard base64 with padding.
enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func encode(_ input: some Sequence<UInt8>) -> String {
    var output: [UInt8] = []
    var group: UInt32 = 0
    var filled = 0
    for byte in input {
      group = group << 8 | UInt32(byte)
      filled += 1
      guard filled == 3 else { continue }
      for shift in [18, 12, 6, 0] as [UInt32] { output.append(alphabet[Int(group >> shift & 63)]) }
      group = 0
      filled = 0
    }
    if filled > 0 {
      group <<= UInt32(8 * (3 - filled))
      for i in 0...3 {
        let shift = UInt32(18 - 6 * i)
        output.append(i <= filled ? alphabet[Int(group >> shift & 63)] : UInt8(ascii: "="))
      }
    }
    return String(decoding: output, as: UTF8.self)
  }
}
