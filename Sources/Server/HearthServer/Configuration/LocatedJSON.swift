// Located JSON: JSON values with their positions in the file, so that configuration errors can name line and
// column.

import JSON
import RealtimeModel

/// A value and the offset of its first byte.
struct LocatedJSON {
  enum Content {
    case null
    case boolean(Bool)
    case number(Double)
    case string(String)
    case array([LocatedJSON])
    case object([(key: String, value: LocatedJSON)])
  }

  var content: Content
  var offset: Int

  /// Parses a file. Comments count as spaces. A repeated member of an object is an error, because it would hide the
  /// other one.
  /// - Throws: ``HearthError`` with line and column.
  static func parse(_ source: [UInt8], path: String) throws(HearthError) -> LocatedJSON {
    let bytes = FirebaseJSON.withoutComments(source)
    var duplicate: (key: String, offset: Int)?
    let result = bytes.withUnsafeBytes { bytes -> Result<LocatedJSON, JSONError> in
      do throws(JSONError) {
        var reader = try JSONReader(unsafeBytes: bytes, limits: JSONLimits(depth: 64, bytes: 4 << 20))
        let value = try read(&reader, &duplicate)
        try reader.finish()
        return .success(value)
      } catch {
        return .failure(error)
      }
    }
    switch result {
    case .success(let value):
      guard let duplicate else { return value }
      throw HearthError(
        "\(path):\(lineAndColumn(of: duplicate.offset, in: source)): the member '\(duplicate.key)' occurs twice in its object. "
          + "Remove one of them.")
    case .failure(let error):
      throw HearthError("\(path):\(lineAndColumn(of: error.offset, in: source)): \(error)")
    }
  }

  /// Reads one value.
  /// - Parameter duplicate: receives the first duplicate member and the offset of its value.
  private static func read(
    _ reader: inout JSONReader, _ duplicate: inout (key: String, offset: Int)?
  ) throws(JSONError) -> LocatedJSON {
    let kind = try reader.peekKind()
    let offset = reader.offset
    switch kind {
    case .null:
      try reader.readNull()
      return LocatedJSON(content: .null, offset: offset)
    case .bool: return LocatedJSON(content: .boolean(try reader.readBool()), offset: offset)
    case .number:
      switch try reader.readNumber() {
      case .int(let number): return LocatedJSON(content: .number(Double(number)), offset: offset)
      case .double(let number): return LocatedJSON(content: .number(number), offset: offset)
      }
    case .string: return LocatedJSON(content: .string(try reader.readString()), offset: offset)
    case .array:
      var elements: [LocatedJSON] = []
      try reader.beginArray()
      while try reader.nextElement() { elements.append(try read(&reader, &duplicate)) }
      return LocatedJSON(content: .array(elements), offset: offset)
    case .object:
      var members: [(key: String, value: LocatedJSON)] = []
      var keys: Set<String> = []
      try reader.beginObject()
      while let key = try reader.nextKey() {
        let value = try read(&reader, &duplicate)
        if !keys.insert(key).inserted, duplicate == nil { duplicate = (key, value.offset) }
        members.append((key, value))
      }
      return LocatedJSON(content: .object(members), offset: offset)
    }
  }

  /// Returns the position `line:column` of an offset. A byte-order mark does not count as a column.
  static func lineAndColumn(of offset: Int, in source: [UInt8]) -> String {
    let before = source.prefix(offset)
    let line = before.count { $0 == UInt8(ascii: "\n") } + 1
    let mark = source.starts(with: FirebaseJSON.byteOrderMark) ? FirebaseJSON.byteOrderMark.count : 0
    let start = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? mark
    return "\(line):\(max(0, before.count - start) + 1)"
  }

  /// A member of an object; nil if it is absent or null.
  subscript(key: String) -> LocatedJSON? {
    guard case .object(let members) = content, let value = members.last(where: { $0.key == key })?.value
    else { return nil }
    if case .null = value.content { return nil }
    return value
  }
}
