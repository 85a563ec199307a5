// A write: one change to one document, as a commit carries it.
//
// Invariant: an empty mask differs from no mask. An empty mask changes no field but ensures that the document exists;
// without a mask the write replaces the document.

/// A write: an operation on a document, with an optional precondition.
public struct Write: Hashable, Sendable {
  /// The operation of a write.
  public enum Operation: Hashable, Sendable {
    /// Sets the document's fields: all of them, or with a mask only the fields it names.
    case update(DocumentName, fields: MapValue)
    /// Deletes the document, if it exists.
    case delete(DocumentName)
    /// Changes nothing, only evaluates the precondition.
    case verify(DocumentName)
    /// Applies transforms only; the older form of an update with an empty mask.
    case transform(DocumentName, [FieldTransform])
  }

  /// The change of the document.
  public var operation: Operation
  /// The fields that an update changes. It sets a field of the mask if it has a value for the field, and deletes the
  /// field otherwise. Nil replaces the complete document. The initializer sorts the paths and removes repeats, because
  /// other writes wait while a write is applied.
  public var mask: [FieldPath]?
  /// Transforms to apply after an update's fields, in order.
  public var transforms: [FieldTransform]
  /// The condition on the document's state before this write.
  public var precondition: Precondition?

  /// Makes a write.
  public init(
    _ operation: Operation, mask: [FieldPath]? = nil, transforms: [FieldTransform] = [],
    precondition: Precondition? = nil
  ) {
    self.operation = operation
    self.mask = mask?.sortedDistinct
    self.transforms = transforms
    self.precondition = precondition
  }

  /// The document that the write addresses.
  public var document: DocumentName {
    switch operation {
    case .update(let name, _), .delete(let name), .verify(let name), .transform(let name, _): name
    }
  }

  /// The transforms that the write applies: those of the operation `transform`, then `transforms`.
  public var allTransforms: [FieldTransform] {
    if case .transform(_, let own) = operation { return own + transforms }
    return transforms
  }
}

/// A condition on a document's state before a write.
public enum Precondition: Hashable, Sendable {
  /// The document must exist (true) or must not exist (false).
  case exists(Bool)
  /// The document must exist and must last have been updated at this time.
  case updateTime(Timestamp)
}

/// The result of one write.
public struct WriteResult: Hashable, Sendable {
  /// The time of the document's last change, which is earlier than the commit if the write changed nothing; nil after a
  /// delete.
  public var updateTime: Timestamp?
  /// One result for each transform, in order; null for array transforms.
  public var transformResults: [Value]

  /// Makes a result.
  public init(updateTime: Timestamp?, transformResults: [Value] = []) {
    self.updateTime = updateTime
    self.transformResults = transformResults
  }
}
