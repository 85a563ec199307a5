// The error for a corrupt row: a stored row that cannot be decoded or that contradicts its key, for example in a
// damaged file.

/// A stored row that cannot be read.
package struct CorruptRow: Error, Sendable, CustomStringConvertible {
  /// The problem, for the operator.
  package var description: String

  /// Creates an error.
  package init(_ description: String) { self.description = description }
}
