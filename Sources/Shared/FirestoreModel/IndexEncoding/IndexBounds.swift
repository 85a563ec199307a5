// Index bounds limit a scan of an index to the values of one kind, because a range filter matches only one kind.

/// The bounds of the encodings of one kind of value.
public enum IndexBounds {
  /// The lower bound of all values of a kind; all smaller kinds lie below it.
  public static func start(of kind: Value.Kind) -> [UInt8] { [IndexTag.tag(of: kind)] }

  /// The exclusive upper bound of all values of a kind.
  public static func end(of kind: Value.Kind) -> [UInt8] { [IndexTag.tag(of: kind) + 1] }

  /// The lower bound of a range with `<` or `<=`: the start of the operand's kind. For numbers it lies above NaN, which
  /// matches no range.
  public static func rangeStart(of kind: Value.Kind) -> [UInt8] {
    kind == .number ? [IndexTag.tag(of: .number), 0x00, 0x01] : start(of: kind)
  }
}
