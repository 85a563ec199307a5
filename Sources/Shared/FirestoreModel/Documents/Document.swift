// A stored document.

/// A document at one version. Times have microseconds.
public struct Document: Hashable, Sendable {
  /// The full name.
  public var name: DocumentName
  /// The contents.
  public var fields: MapValue
  /// The time of the commit that created the document. For a document that was deleted and created again, the time of
  /// the last creation.
  public var createTime: Timestamp
  /// The time of the last commit that changed the contents.
  public var updateTime: Timestamp

  /// Makes a document.
  public init(name: DocumentName, fields: MapValue, createTime: Timestamp, updateTime: Timestamp) {
    self.name = name
    self.fields = fields
    self.createTime = createTime
    self.updateTime = updateTime
  }
}
