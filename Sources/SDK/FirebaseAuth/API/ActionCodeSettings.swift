// The settings of an e-mail with an action code.

public import Foundation
import Locking

/// The settings of an e-mail with an action code: the page and the apps that open its link.
open class ActionCodeSettings: NSObject, @unchecked Sendable {
  // SAFETY: the values are behind a lock.
  private struct Values {
    var url: URL?
    var handleCodeInApp = false
    var iOSBundleID: String?
    var androidPackageName: String?
    var androidMinimumVersion: String?
    var androidInstallIfNotAvailable = false
    var linkDomain: String?
  }

  private let values = Guarded(Values())

  /// Makes settings without values, except for the bundle identifier of this program.
  public override init() {
    super.init()
    iOSBundleID = Bundle.main.bundleIdentifier
  }

  /// The continue URL: a page that opens after the server has applied the code, or that applies the code
  /// itself.
  open var url: URL? {
    get { values.withLock { $0.url } }
    set { values.withLock { $0.url = newValue } }
  }

  /// Whether the app applies the code instead of the server's page. It must be true for sign-in links.
  open var handleCodeInApp: Bool {
    get { values.withLock { $0.handleCodeInApp } }
    set { values.withLock { $0.handleCodeInApp = newValue } }
  }

  /// The iOS app that opens the link.
  open var iOSBundleID: String? {
    get { values.withLock { $0.iOSBundleID } }
    set { values.withLock { $0.iOSBundleID = newValue } }
  }

  /// The Android app that opens the link.
  open var androidPackageName: String? {
    get { values.withLock { $0.androidPackageName } }
    set { values.withLock { $0.androidPackageName = newValue } }
  }

  /// The minimum version of the Android app that opens the link.
  open var androidMinimumVersion: String? {
    get { values.withLock { $0.androidMinimumVersion } }
    set { values.withLock { $0.androidMinimumVersion = newValue } }
  }

  /// Whether the Android app is installed if it is missing.
  open var androidInstallIfNotAvailable: Bool {
    get { values.withLock { $0.androidInstallIfNotAvailable } }
    set { values.withLock { $0.androidInstallIfNotAvailable = newValue } }
  }

  /// The domain of the link; nil for the project's default.
  public var linkDomain: String? {
    get { values.withLock { $0.linkDomain } }
    set { values.withLock { $0.linkDomain = newValue } }
  }

  /// Sets the iOS app that opens the link.
  open func setIOSBundleID(_ bundleID: String) {
    iOSBundleID = bundleID
  }

  /// Sets the Android app that opens the link.
  ///
  /// - Parameters:
  ///   - androidPackageName: the package name.
  ///   - installIfNotAvailable: whether the app is installed if it is missing.
  ///   - minimumVersion: the minimum version; nil for any version.
  open func setAndroidPackageName(
    _ androidPackageName: String, installIfNotAvailable: Bool, minimumVersion: String?
  ) {
    values.withLock {
      $0.androidPackageName = androidPackageName
      $0.androidInstallIfNotAvailable = installIfNotAvailable
      $0.androidMinimumVersion = minimumVersion
    }
  }
}
