// Where in an index a type's values lie, for ranges that are bound to their operand's type.

/// Bounds of the encodings of one kind of value.
public enum IndexBounds {
  /// The least bytes that any value of a kind has; every lesser kind lies below.
  public static func start(of kind: Value.Kind) -> [UInt8] { [IndexTag.tag(of: kind)] }

  /// The first bytes above every value of a kind.
  public static func end(of kind: Value.Kind) -> [UInt8] { [IndexTag.tag(of: kind) + 1] }

  /// Where `<` and `<=` begin: the start of the operand's kind, and above NaN for numbers, since a stored NaN
  /// meets no range.
  public static func rangeStart(of kind: Value.Kind) -> [UInt8] {
    kind == .number ? [IndexTag.tag(of: .number), 0x00, 0x01] : start(of: kind)
  }
}
