/// A record of an export's output file, which is a log in the block log format of LevelDB (see `BlockLogReader`).
struct ExportRecord: Equatable {
  /// The offset in the log at which the record begins.
  var offset: Int
  var bytes: [UInt8]
}
