# Installs vault-search, vault-index, vault-tools and vault-agent for the current user:
#   install.ps1 [-Version VERSION] [-To FOLDER] [-Uninstall]
# Downloads the archive for Windows, checks its SHA-256 sum, puts the programs into FOLDER, and adds it to the PATH of
# the user. Needs PowerShell 5.1, and no administrator.
param(
  [string] $Version = '@VERSION@',
  [string] $To = (Join-Path $env:LOCALAPPDATA 'Programs\vault-agent'),
  [switch] $Uninstall
)
$ErrorActionPreference = 'Stop'
# The progress bar makes downloads many times slower.
$ProgressPreference = 'SilentlyContinue'

$releases = if ($env:VAULT_AGENT_RELEASES) { $env:VAULT_AGENT_RELEASES } else { '@REPOSITORY@/releases/download' }
$names = 'vault-agent', 'vault-search', 'vault-index', 'vault-tools'
$path = @([Environment]::GetEnvironmentVariable('Path', 'User') -split ';' | Where-Object { $_ -and $_ -ne $To })

if ($Uninstall) {
  foreach ($name in $names) { Remove-Item -Force -ErrorAction SilentlyContinue (Join-Path $To "$name.exe") }
  [Environment]::SetEnvironmentVariable('Path', ($path -join ';'), 'User')
  Write-Output "removed the programs from $To; indexes and settings stay"
  return
}

if (-not [Environment]::Is64BitOperatingSystem) { throw 'there is an archive for 64-bit Windows only' }
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
  $sum = (Get-FileHash -Algorithm SHA256 (Join-Path $scratch "$archive.zip")).Hash
  if ($sum -ne ($line -split ' ')[0]) {
    throw "$archive.zip does not have the sum that SHA256SUMS names; nothing is installed"
  }
  Expand-Archive (Join-Path $scratch "$archive.zip") $scratch
  New-Item -ItemType Directory -Force $To | Out-Null
  foreach ($name in $names) { Copy-Item -Force (Join-Path $scratch "$archive\$name.exe") $To }
  [Environment]::SetEnvironmentVariable('Path', (@($path) + $To -join ';'), 'User')
} finally {
  Remove-Item -Recurse -Force $scratch
}
Write-Output "installed vault-agent $Version, vault-search, vault-index and vault-tools in $To"
Write-Output 'open a new terminal, and try: vault-search --vault FOLDER-OF-YOUR-NOTES WORDS'
