// A field transform: a change to one field that the server computes from the field's current value.

/// A transform of one field.
public struct FieldTransform: Hashable, Sendable {
  /// The computation.
  public enum Operation: Hashable, Sendable {
    /// The commit time, with a precision of milliseconds.
    case serverTimestamp
    /// Adds a number; integers saturate.
    case increment(Value)
    /// The greater of the field and a number.
    case maximum(Value)
    /// The lesser of the field and a number.
    case minimum(Value)
    /// Appends the elements that the array does not contain.
    case appendMissing([Value])
    /// Removes every element equal to one of these.
    case removeAll([Value])
  }

  /// The field that the server changes.
  public var field: FieldPath
  /// The computation of the field's new value.
  public var operation: Operation

  /// Makes a transform.
  public init(_ field: FieldPath, _ operation: Operation) {
    self.field = field
    self.operation = operation
  }
}
