// The row path: a path as the key of a row in the cache file.
//
// Each key is written as UTF-8 and ends with a zero byte. Therefore the rows of a location and its
// descendants are contiguous, and a location's row precedes those of its descendants. The bytes zero and one
// are escaped in keys; only a faulty server sends them.
//
// Invariant: different paths have different encodings, and an encoding is a prefix of another if and only if
// its path is an ancestor of the other path.

import RealtimeModel

/// Encodes paths as bytes.
enum RowPath {
  private static let end: UInt8 = 0
  private static let escape: UInt8 = 1

  /// The maximum number of levels of a stored path, which limits recursion. It exceeds the levels of a
  /// server's path plus a path in a merge plus the depth of a value.
  static let maximumLevels = 512

  /// The encoding of a path.
  static func encode(_ path: Path) -> [UInt8] {
    var bytes: [UInt8] = []
    for key in path.keys { append(key, to: &bytes) }
    return bytes
  }

  /// Appends a key to the encoding of a path.
  static func append(_ key: ChildKey, to bytes: inout [UInt8]) {
    for byte in key.text.utf8 {
      if byte <= escape {
        bytes.append(escape)
        bytes.append(byte + 2)
      } else {
        bytes.append(byte)
      }
    }
    bytes.append(end)
  }

  /// The lowest bytes above all rows of a location. UTF-8 never contains the byte 255.
  static func upperBound(_ bytes: [UInt8]) -> [UInt8] { bytes + [0xFF] }

  /// Decodes bytes to keys.
  ///
  /// - Throws: `CacheFailure` if the bytes are not an encoding.
  static func decode(_ bytes: some Sequence<UInt8>) throws -> [ChildKey] {
    var keys: [ChildKey] = []
    var text: [UInt8] = []
    var isEscaped = false
    var isOpen = false
    for byte in bytes {
      isOpen = true
      if isEscaped {
        guard byte == 2 || byte == 3 else { throw CacheFailure.damaged("a row has an invalid path") }
        text.append(byte - 2)
        isEscaped = false
      } else if byte == escape {
        isEscaped = true
      } else if byte == end {
        guard let key = String(validating: text, as: UTF8.self) else {
          throw CacheFailure.damaged("a path is not UTF-8")
        }
        guard keys.count < maximumLevels else {
          throw CacheFailure.damaged("a row has a path of more than \(maximumLevels) levels")
        }
        keys.append(ChildKey(key))
        text.removeAll(keepingCapacity: true)
        isOpen = false
      } else {
        text.append(byte)
      }
    }
    guard !isOpen else { throw CacheFailure.damaged("a row has an incomplete path") }
    return keys
  }
}
