// A change to one field that the server computes from its present value.

/// A transform of one field.
public struct FieldTransform: Hashable, Sendable {
  /// What to compute.
  public enum Operation: Hashable, Sendable {
    /// The commit's time, in milliseconds.
    case serverTimestamp
    /// Adds a number; integers saturate.
    case increment(Value)
    /// The greater of the field and a number.
    case maximum(Value)
    /// The lesser of the field and a number.
    case minimum(Value)
    /// Appends those elements that the array does not hold yet.
    case appendMissing([Value])
    /// Removes every element equal to one of these.
    case removeAll([Value])
  }

  /// The field.
  public var field: FieldPath
  /// What to compute.
  public var operation: Operation

  /// Makes a transform.
  public init(_ field: FieldPath, _ operation: Operation) {
    self.field = field
    self.operation = operation
  }
}
