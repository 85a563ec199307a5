// The row path: a path as the key of a row in the cache file.
//
// Each key is written as UTF-8 and ends with a zero byte. So the rows of a location and of everything below it are
// contiguous, and a location's own row precedes them. Zero and one in a key, which only a faulty server sends, are
// escaped.
//
// Invariant: different paths have different encodings, and an encoding is a prefix of another exactly if its path
// contains the other path.

import RealtimeModel

/// A path as bytes.
enum RowPath {
  private static let end: UInt8 = 0
  private static let escape: UInt8 = 1

  /// The maximum levels of a stored path, for code that recurses. It exceeds a server's path, with a path in a merge and
  /// a value below both.
  static let maximumLevels = 512

  /// The bytes of a path.
  static func encode(_ path: Path) -> [UInt8] {
    var bytes: [UInt8] = []
    for key in path.keys { append(key, to: &bytes) }
    return bytes
  }

  /// Adds a key to the bytes of a path.
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

  /// The first bytes after all rows of a location. No byte of UTF-8 is 255.
  static func upperBound(_ bytes: [UInt8]) -> [UInt8] { bytes + [0xFF] }

  /// Splits bytes into keys.
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
