// Reads members, elements and ranges of a value, and converts a value to text.

extension RuleValue {
  /// The value of `self.name`.
  func member(_ name: RuleText) throws(RuleFault) -> RuleValue {
    switch self {
    case .map(let map):
      guard let value = map[name] else { throw .undefinedProperty(name.string) }
      return value
    case .null: throw .nullValue
    case .path: throw .undefinedProperty(name.string)
    default: throw .unsupported("\(typeName).\(name.string)")
    }
  }

  /// The value of `self[index]`.
  func item(at index: RuleValue) throws(RuleFault) -> RuleValue {
    switch (self, index) {
    case (.null, _): throw .nullValue
    case (.map(let map), .string(let key)):
      guard let value = map[key] else { throw .undefinedProperty(key.string) }
      return value
    case (.list(let list), .int(let index)): return list[try Self.position(index, list.count)]
    case (.string(let text), .int(let index)):
      let position = try Self.position(index, text.count)
      return .string(text.slice(position..<(position + 1)))
    case (.path(let path), .int(let index)):
      guard !path.hasPlaceholders else { throw .invalidPath }
      guard case .text(let text) = path.segments[try Self.position(index, path.segments.count)] else {
        throw .invalidPath
      }
      return .string(text)
    default: throw .unsupported("\(typeName)[\(index.typeName)]")
    }
  }

  private static func position(_ index: Int64, _ count: Int) throws(RuleFault) -> Int {
    guard index >= 0, index < count else { throw .outOfBounds }
    return Int(index)
  }

  /// The value of `self[from:to]`; null stands for a missing end.
  ///
  /// As in Google's emulator, the start must lie within the value, and the range 0 to 0 is an error.
  func slice(from: RuleValue, to: RuleValue) throws(RuleFault) -> RuleValue {
    let count: Int
    switch self {
    case .list(let list): count = list.count
    case .string(let text): count = text.count
    case .path(let path):
      guard !path.hasPlaceholders else { throw .invalidPath }
      count = path.segments.count
    case .null: throw .nullValue
    default: throw .unsupported("\(typeName)[:]")
    }
    let start = try Self.bound(from, ifNull: 0)
    let end = try Self.bound(to, ifNull: Int64(count))
    guard start >= 0, start < count, end >= start, end <= count, end > 0 else { throw .outOfBounds }
    let range = Int(start)..<Int(end)
    switch self {
    case .list(let list): return .list(list.slice(range))
    case .string(let text): return .string(text.slice(range))
    case .path(let path): return .path(RulePath(segments: Array(path.segments[range])))
    default: preconditionFailure("invariant: only lists, texts and paths have slices")
    }
  }

  private static func bound(_ value: RuleValue, ifNull: Int64) throws(RuleFault) -> Int64 {
    switch value {
    case .null: return ifNull
    case .int(let index): return index
    default: throw .unsupported("[\(value.typeName):]")
    }
  }

  /// The value as `string(…)` and interpolations write it.
  func convertedToText() throws(RuleFault) -> RuleText {
    switch self {
    case .null: RuleText("null")
    case .bool(let value): RuleText(value ? "true" : "false")
    case .int(let value): RuleText(String(value))
    case .float(let value): RuleText(RuleNumbers.text(value))
    case .string(let text): text
    case .path(let path): path.text
    default: throw .unsupported("string(\(typeName))")
    }
  }
}
