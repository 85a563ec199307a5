// A stored document.

/// A document at one version. Times are whole microseconds.
public struct Document: Hashable, Sendable {
  /// Its full name.
  public var name: DocumentName
  /// Its contents.
  public var fields: MapValue
  /// The commit that created it (again, after a delete).
  public var createTime: Timestamp
  /// The last commit that changed its contents.
  public var updateTime: Timestamp

  /// Makes a document.
  public init(name: DocumentName, fields: MapValue, createTime: Timestamp, updateTime: Timestamp) {
    self.name = name
    self.fields = fields
    self.createTime = createTime
    self.updateTime = updateTime
  }
}
