# Installs vault-search, vault-index, vault-tools and vault-agent for the current user:
#   install.ps1 [-Version VERSION] [-To FOLDER] [-Uninstall]
# Downloads the archive for Windows, checks its SHA-256 checksum, puts the programs into FOLDER, and adds it to the PATH
# of the user. Needs PowerShell 5.1, and no administrator.

# In a scope of its own, so that `irm … | iex` leaves no variables or preferences in the person's session.
& {
  param(
    [string] $Version = '@VERSION@',
    [string] $To = (Join-Path $env:LOCALAPPDATA 'Programs\vault-agent'),
    [switch] $Uninstall
  )
  $ErrorActionPreference = 'Stop'
  # The progress bar makes downloads many times slower.
  $ProgressPreference = 'SilentlyContinue'

  $releases = if ($env:VAULT_AGENT_RELEASES) { $env:VAULT_AGENT_RELEASES } else { '@REPOSITORY@/releases/download' }
  # vault-agent is the first, because the others start it: if any of them runs, nothing is changed.
  $names = 'vault-agent', 'vault-search', 'vault-index', 'vault-tools'
  $busy = "If one of the programs runs, in an assistant or an editor for example, end it and try again."

  # Not by [Environment], which would replace variables in other entries by their values.
  $environment = [Microsoft.Win32.Registry]::CurrentUser.CreateSubKey('Environment')
  $path = @($environment.GetValue('Path', '', 'DoNotExpandEnvironmentNames') -split ';' | Where-Object { $_ -and $_ -ne $To })
  function Set-UserPath($entries) {
    $environment.SetValue('Path', ($entries -join ';'), 'ExpandString')
    # Deletes a variable that is not there, which tells the desktop to read the variables again.
    [Environment]::SetEnvironmentVariable('VAULT_AGENT_NO_VARIABLE', [NullString]::Value, 'User')
  }

  if ($Uninstall) {
    foreach ($name in $names) {
      $file = Join-Path $To "$name.exe"
      try { if (Test-Path $file) { Remove-Item -Force $file } } catch { throw "$file cannot be removed: $_ $busy" }
    }
    Set-UserPath $path
    Write-Output "removed the programs from $To; indexes and settings stay"
    return
  }

  if (-not [Environment]::Is64BitOperatingSystem) { throw 'there is an archive for 64-bit Windows only' }
  # PowerShell 5.1 can have an older default, which GitHub refuses.
  if ($PSVersionTable.PSVersion.Major -lt 6) {
    [Net.ServicePointManager]::SecurityProtocol = [Net.ServicePointManager]::SecurityProtocol -bor [Net.SecurityProtocolType]::Tls12
  }
  $Version = $Version -replace '^v', ''
  $archive = "vault-v$Version-x86_64-pc-windows-msvc"
  $scratch = Join-Path ([IO.Path]::GetTempPath()) ([IO.Path]::GetRandomFileName())
  New-Item -ItemType Directory $scratch | Out-Null
  try {
    foreach ($file in 'SHA256SUMS', "$archive.zip") {
      Invoke-WebRequest -UseBasicParsing "$releases/v$Version/$file" -OutFile (Join-Path $scratch $file)
    }
    $line = Get-Content (Join-Path $scratch 'SHA256SUMS') | Where-Object { $_ -like "*  $archive.zip" }
    if (-not $line) { throw "SHA256SUMS of version $Version has no line for $archive.zip" }
    $checksum = (Get-FileHash -Algorithm SHA256 (Join-Path $scratch "$archive.zip")).Hash
    if ($checksum -ne ($line -split ' ')[0]) {
      throw "$archive.zip does not have the checksum that SHA256SUMS names; nothing is changed"
    }
    Expand-Archive (Join-Path $scratch "$archive.zip") $scratch
    New-Item -ItemType Directory -Force $To | Out-Null
    foreach ($name in $names) {
      $file = Join-Path $To "$name.exe"
      try { Copy-Item -Force (Join-Path $scratch "$archive\$name.exe") $file } catch { throw "$file cannot be written: $_ $busy" }
    }
    Set-UserPath (@($path) + $To)
  } finally {
    Remove-Item -Recurse -Force $scratch
  }
  Write-Output "installed vault-agent $Version, vault-search, vault-index and vault-tools in $To"
  Write-Output 'open a new terminal, and try: vault-search --vault FOLDER-OF-YOUR-NOTES WORDS'
} @args
