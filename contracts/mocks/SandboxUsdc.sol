// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";

/// @title A 6-decimal dollar token for local chains, to be used behind {SandboxUsdcProxy}.
/// @notice Behaves like the real token in everything that a venue can observe: every transfer reads the pause flag and the blacklist flags of
/// all accounts involved (the flag is the highest bit of the balance word), transferFrom writes the allowance even when it is unlimited, permits
/// are EIP-2612 with version "2", and minters have allowances of their own.
contract SandboxUsdc {
    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    event Mint(address indexed minter, address indexed to, uint256 amount);
    event MinterConfigured(address indexed minter, uint256 minterAllowedAmount);
    event Blacklisted(address indexed account);
    event UnBlacklisted(address indexed account);
    event Pause();
    event Unpause();

    error AlreadyInitialized();
    error NotRole(address caller);
    error Paused();
    error AccountBlacklisted(address account);
    error ZeroAddress();
    error InsufficientBalance(address account, uint256 balance, uint256 needed);
    error InsufficientAllowance(address spender, uint256 allowance, uint256 needed);
    error MintAllowanceExceeded(address minter, uint256 allowance, uint256 needed);
    error PermitExpired(uint256 deadline);
    error InvalidPermit(address owner);

    string public constant name = "USD Coin";
    string public constant symbol = "USDC";
    string public constant version = "2";
    uint8 public constant decimals = 6;

    bytes32 public constant PERMIT_TYPEHASH = keccak256(
        "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
    );
    bytes32 private constant DOMAIN_TYPEHASH = keccak256(
        "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
    );
    uint256 private constant BLACKLIST_BIT = 1 << 255;

    /// @dev May configure minters, pause and blacklist; the real token gives each role to another account.
    address public owner;
    bool public paused;
    uint256 public totalSupply;
    mapping(address account => uint256) private _balanceAndBlacklist;
    mapping(address account => mapping(address spender => uint256)) private _allowances;
    mapping(address minter => uint256) public minterAllowance;
    mapping(address account => uint256) public nonces;

    modifier onlyOwner() {
        if (msg.sender != owner) revert NotRole(msg.sender);
        _;
    }

    modifier whenNotPaused() {
        if (paused) revert Paused();
        _;
    }

    modifier notBlacklisted(address account) {
        if (isBlacklisted(account)) revert AccountBlacklisted(account);
        _;
    }

    /// @notice Called once, through the proxy, right after its deployment.
    function initialize(address owner_) external {
        if (owner != address(0)) revert AlreadyInitialized();
        if (owner_ == address(0)) revert ZeroAddress();
        owner = owner_;
    }

    function configureMinter(address minter, uint256 allowed) external onlyOwner {
        minterAllowance[minter] = allowed;
        emit MinterConfigured(minter, allowed);
    }

    function pause() external onlyOwner {
        paused = true;
        emit Pause();
    }

    function unpause() external onlyOwner {
        paused = false;
        emit Unpause();
    }

    function blacklist(address account) external onlyOwner {
        _balanceAndBlacklist[account] |= BLACKLIST_BIT;
        emit Blacklisted(account);
    }

    function unBlacklist(address account) external onlyOwner {
        _balanceAndBlacklist[account] &= ~BLACKLIST_BIT;
        emit UnBlacklisted(account);
    }

    function isBlacklisted(address account) public view returns (bool) {
        return _balanceAndBlacklist[account] & BLACKLIST_BIT != 0;
    }

    function balanceOf(address account) public view returns (uint256) {
        return _balanceAndBlacklist[account] & ~BLACKLIST_BIT;
    }

    function allowance(address account, address spender) external view returns (uint256) {
        return _allowances[account][spender];
    }

    function mint(
        address to,
        uint256 amount
    ) external whenNotPaused notBlacklisted(msg.sender) notBlacklisted(to) returns (bool) {
        if (to == address(0)) revert ZeroAddress();
        uint256 allowed = minterAllowance[msg.sender];
        if (amount > allowed) revert MintAllowanceExceeded(msg.sender, allowed, amount);
        minterAllowance[msg.sender] = allowed - amount;
        totalSupply += amount;
        _balanceAndBlacklist[to] += amount;
        emit Mint(msg.sender, to, amount);
        emit Transfer(address(0), to, amount);
        return true;
    }

    function approve(
        address spender,
        uint256 value
    ) external whenNotPaused notBlacklisted(msg.sender) notBlacklisted(spender) returns (bool) {
        _approve(msg.sender, spender, value);
        return true;
    }

    function permit(
        address account,
        address spender,
        uint256 value,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external whenNotPaused notBlacklisted(account) notBlacklisted(spender) {
        if (block.timestamp > deadline) revert PermitExpired(deadline);
        bytes32 structHash = keccak256(
            abi.encode(PERMIT_TYPEHASH, account, spender, value, nonces[account]++, deadline)
        );
        bytes32 digest = MessageHashUtils.toTypedDataHash(DOMAIN_SEPARATOR(), structHash);
        if (ECDSA.recover(digest, v, r, s) != account) revert InvalidPermit(account);
        _approve(account, spender, value);
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return
            keccak256(
                abi.encode(
                    DOMAIN_TYPEHASH,
                    keccak256(bytes(name)),
                    keccak256(bytes(version)),
                    block.chainid,
                    address(this)
                )
            );
    }

    function transfer(
        address to,
        uint256 value
    ) external whenNotPaused notBlacklisted(msg.sender) notBlacklisted(to) returns (bool) {
        _transfer(msg.sender, to, value);
        return true;
    }

    function transferFrom(
        address from,
        address to,
        uint256 value
    ) external whenNotPaused notBlacklisted(msg.sender) notBlacklisted(from) notBlacklisted(to) returns (bool) {
        uint256 allowed = _allowances[from][msg.sender];
        if (value > allowed) revert InsufficientAllowance(msg.sender, allowed, value);
        _transfer(from, to, value);
        _allowances[from][msg.sender] = allowed - value;
        return true;
    }

    function _approve(address account, address spender, uint256 value) private {
        if (spender == address(0)) revert ZeroAddress();
        _allowances[account][spender] = value;
        emit Approval(account, spender, value);
    }

    function _transfer(address from, address to, uint256 value) private {
        if (to == address(0)) revert ZeroAddress();
        uint256 balance = balanceOf(from);
        if (value > balance) revert InsufficientBalance(from, balance, value);
        // Neither account is blacklisted here, so both words are plain balances, and no balance exceeds the supply.
        unchecked {
            _balanceAndBlacklist[from] = balance - value;
            _balanceAndBlacklist[to] += value;
        }
        emit Transfer(from, to, value);
    }
}
